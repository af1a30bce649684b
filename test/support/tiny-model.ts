import { chatMlTemplate, loadChatModel, toWarmUpSamples } from '@aworld-train/chat'
import type { TrainingSample } from '@aworld-train/core'
import { createLocalEngine, createVocabularyTokenizer, initModel } from '@aworld-train/engines/local'
import { trainSft } from '@aworld-train/training'

export interface TinyModelOptions {
  /** Most tokens of a conversation. */
  readonly contextLength?: number
  /** Answers of the model, all equally frequent. An empty text is only the token that ends an answer. */
  readonly says?: readonly string[]
  /** Another makes other weights. */
  readonly seed?: number
}

/** Makes a model folder of a few thousand weights that gives one of a few answers. */
export async function makeTinyModel(
  directory: string,
  { contextLength = 512, says = ['yes', 'no'], seed = 5 }: TinyModelOptions = {},
): Promise<string> {
  const tokenizer = createVocabularyTokenizer({
    specialTokens: ['<|im_start|>', '<|im_end|>'],
    pieces: ['system\n', 'user\n', 'assistant\n', 'tool\n', 'Is ', ' even?', ...says.filter(Boolean)],
  })
  await initModel(directory, {
    config: {
      hiddenSize: 16,
      layers: 1,
      heads: 2,
      kvHeads: 1,
      headDim: 8,
      intermediateSize: 32,
      ropeTheta: 10_000,
      rmsNormEps: 1e-6,
      tieWordEmbeddings: true,
      qkNorm: true,
      contextLength,
    },
    tokenizer,
    chatTemplate: chatMlTemplate,
    seed,
  })
  await teach(directory, says)
  return directory
}

/** Trains supervised steps on the answers in turn, until the model says little else. */
async function teach(directory: string, answers: readonly string[]): Promise<void> {
  const local = await createLocalEngine({ model: directory, simd: 'plain', threads: 1 })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const demonstration = (index: number): TrainingSample[] =>
      toWarmUpSamples({
        chat,
        messages: [
          { role: 'user', content: `Is ${index} even?` },
          { role: 'assistant', content: answers[((index * 7919) % 13) % answers.length] as string },
        ],
      })
    const steps = 60
    await trainSft({
      learner: local.learner,
      batches: (function* () {
        for (let step = 0; step < steps; step++) yield [0, 1, 2, 3].flatMap((row) => demonstration(step * 4 + row))
      })(),
      steps,
      learningRate: 2e-2,
      warmupSteps: 3,
      signal: new AbortController().signal,
    })
    await local.saveModel(directory)
  } finally {
    await local.close()
  }
}
