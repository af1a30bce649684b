import type { TrainerFacts } from '@aworld-train/core'

/** The trainer in the box on the page of trainers. */
export const localFacts: TrainerFacts = {
  summary: 'The trainer in the box: kernels in WebAssembly, in this process. For learning how it works, for tests, and for small models.',
  versions: ['Node 22.19 or newer'],
  environment: null,
  command: 'npx aworld-train train --engine local',
  features: {
    processor: 'yes, up to a few million weights',
    gpu: 'no',
    severalRanks: 'no: one process with up to 8 threads',
    vllm: 'no: it samples by itself',
    lora: 'no: models of this size have all their weights trained',
    klTerm: 'yes, `training.klCoefficient`',
    severalRows: 'yes',
    evaluation: 'yes',
    resume: 'yes, bit by bit',
    export: 'yes; checkpoints are folders in the form of Hugging Face',
  },
  notShown: {
    gradients: 'the embedded learner keeps no derivative by token; the direction of its update has it',
    microBatches: 'no setting cuts its batch: every update adds up four parts of it, which the direction of its update has',
  },
}
