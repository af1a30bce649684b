import type { TrainerFacts } from '@aworld-train/core'

/** ms-swift on the page of trainers. */
export const swiftFacts: TrainerFacts = {
  summary: 'The GRPOTrainer of ms-swift in one process; the model that is trained samples. For the models and arguments of ModelScope.',
  versions: ['ms-swift 4.6.0', 'TRL 0.29.1', 'torch 2.13.0'],
  environment: { megabytes: 4000, seconds: 20 },
  command: 'npx aworld-train setup swift && npx aworld-train train --engine swift',
  features: {
    processor: 'yes',
    gpu: 'one, the first of `CUDA_VISIBLE_DEVICES`; never run here',
    severalRanks: 'no: one process, whose rows are compared one by one',
    vllm: 'no: its servers take no token ids, so the model that is trained samples',
    lora: 'yes, `tuner_type: lora`',
    klTerm: 'yes, `beta`',
    severalRows: 'no: ms-swift takes one row a request, `last` or `longest`',
    evaluation: 'yes',
    resume: 'yes',
    export: 'yes; an adapter is merged',
  },
  notShown: {},
}
