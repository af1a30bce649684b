import type { TrainerFacts } from '@aworld-train/core'

/** Tinker on the page of trainers. */
export const tinkerFacts: TrainerFacts = {
  summary:
    'A Tinker service samples and trains a LoRA adapter: for models of real size with an address and a key, without a GPU and without Python.',
  versions: ['the wire of the tinker SDK 0.38.0', 'SkyRL 0.4.0'],
  environment: null,
  command: 'TINKER_BASE_URL=… TINKER_API_KEY=… npx aworld-train train --engine tinker',
  features: {
    processor: 'a service decides; SkyRL runs on one',
    gpu: 'that of the service',
    severalRanks: 'those of the service',
    vllm: 'that of the service',
    lora: 'yes, and nothing else',
    klTerm: 'no: the protocol has none, so a coefficient is refused',
    severalRows: 'yes',
    evaluation: 'yes',
    resume: 'yes, from checkpoints at the service',
    export: 'no: the weights stay at the service',
  },
  notShown: {
    gradients: 'a Tinker service returns logprobs and no derivative by token',
    direction: 'the weights of the adapter stay at the service',
    emptyTurn: 'a Tinker service stops at tokens or at texts, so that an agent can name no stop texts',
    microBatches: 'the service cuts batches by itself',
  },
}
