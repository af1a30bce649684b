import type { TrainerFacts } from '@aworld-train/core'

/** verl on the page of trainers. */
export const verlFacts: TrainerFacts = {
  summary: 'PPO and GRPO over Ray, FSDP and Megatron: for models of billions of weights on many GPUs.',
  versions: ['verl 0.9.1', 'torch 2.13.0', 'Ray 2.60.0'],
  environment: { megabytes: 4400, seconds: 41 },
  command: 'npx aworld-train setup verl && npx aworld-train train --engine verl',
  features: {
    processor: '`smoke`: small models, for trying',
    gpu: 'yes; taken by the schema of verl, run by `npm run test:gpu` alone',
    severalRanks: '`layout`; rendered, never run here',
    vllm: 'with verl’s own keys; never run here',
    lora: 'with verl’s own keys; never run here',
    klTerm: 'yes, with verl’s own keys',
    severalRows: 'yes',
    evaluation: 'yes',
    resume: 'yes',
    export: 'yes; FSDP shards are merged',
  },
  notShown: { gradients: 'derivatives by token stay with the workers of verl; the direction of its update has them' },
}
