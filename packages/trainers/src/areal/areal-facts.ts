import type { TrainerFacts } from '@aworld-train/core'

/** AReaL on the page of trainers. */
export const arealFacts: TrainerFacts = {
  summary: 'The PPOTrainer of AReaL with rollouts of ours: for training that samples while it trains, on many GPUs.',
  versions: ['AReaL 1.0.4', 'torch 2.10.0'],
  environment: { megabytes: 7300, seconds: 95 },
  command: 'npx aworld-train setup areal && npx aworld-train train --engine areal',
  features: {
    processor: 'yes, one process and the bridge’s own server, which takes the weights from disk',
    gpu: 'with AReaL’s own keys; never run here',
    severalRanks: 'no: one process, and `actor.backend` of more is refused',
    vllm: 'with AReaL’s own keys; never run here',
    lora: 'no: AReaL loads adapters by the interface of vLLM or SGLang, which was not tried',
    klTerm: '`actor.kl_ctl` with a section `ref`; never run here',
    severalRows: 'no: AReaL normalizes rewards over rows, so one row a rollout, `last` or `longest`',
    evaluation: 'yes',
    resume: 'yes',
    export: 'yes',
  },
  notShown: {
    emptyTurn: 'AReaL’s client of vLLM passes on no stop texts, and a call that names them is refused',
    microBatches: 'on a processor every row is a micro-batch of its own, which loss and direction have',
  },
}
