import type { TrainerFacts } from '@aworld-train/core'

/** TRL on the page of trainers. */
export const trlFacts: TrainerFacts = {
  summary: "Hugging Face's GRPOTrainer in one process; the model that is trained samples, so that it needs no other server.",
  versions: ['TRL 1.16.0', 'torch 2.13.0'],
  environment: { megabytes: 4100, seconds: 35 },
  command: 'npx aworld-train setup trl && npx aworld-train train --engine trl',
  features: {
    processor: 'yes',
    gpu: 'one, the first of `CUDA_VISIBLE_DEVICES`; never run here',
    severalRanks: 'no: one process, whose model samples',
    vllm: '`use_vllm`, server or colocate; never run here, for TRL pushes weights from a GPU',
    lora: 'yes, the fields of peft under `lora`',
    klTerm: '`beta`; never run here',
    severalRows: 'no: TRL trains one row a rollout, `last` or `longest`',
    evaluation: 'yes',
    resume: 'yes',
    export: 'yes; an adapter is merged',
  },
  notShown: { leaveOneOut: 'GRPOTrainer has no such estimator, and `training.advantage` refuses it' },
}
