import {
  chatMlTemplate,
  createLocalEngine,
  createVocabularyTokenizer,
  initModel,
  loadChatModel,
  renderChat,
  toWarmUpSamples,
  trainSft,
  type WarmUpRequest,
} from 'aworld-train'
import { systemPrompt } from './agent.ts'
import { demonstrations } from './demonstrations.ts'
import { toolList } from './tools.ts'
import { specialTokens, vocabularyPieces } from './vocabulary.ts'

const steps = 600
const batchSize = 64

const shape = {
  hiddenSize: 96,
  layers: 2,
  heads: 3,
  kvHeads: 3,
  headDim: 32,
  intermediateSize: 176,
  ropeTheta: 10_000,
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  qkNorm: true,
  contextLength: 2048,
}

const system = { role: 'system', content: systemPrompt } as const
const tools = toolList.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema }))

/**
 * Makes the starting model: a random one that is then shown demonstrations over random tables, first mostly right ones
 * (it learns to copy), then sloppy ones (which set the reward that training starts from).
 */
export async function warmUp({ directory, seed, simd, threads, signal, onProgress }: WarmUpRequest): Promise<void> {
  const head = renderChat({ chatTemplate: chatMlTemplate, messages: [system], tools })
  const tokenizer = createVocabularyTokenizer({ specialTokens, pieces: vocabularyPieces(head) })
  await initModel(directory, { config: shape, tokenizer, chatTemplate: chatMlTemplate, seed })
  const local = await createLocalEngine({ model: directory, simd, ...(threads === null ? {} : { threads }) })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    function* batches() {
      for (let step = 0; step < steps; step++) {
        const conversations = demonstrations({ seed, step, steps, count: batchSize })
        yield conversations.flatMap((messages) => toWarmUpSamples({ chat, messages: [system, ...messages], tools }))
      }
    }
    await trainSft({
      learner: local.learner,
      batches: batches(),
      steps,
      learningRate: 4e-3,
      warmupSteps: 20,
      finalLearningRateFraction: 0.1,
      signal,
      onStep: (step, { loss }) => onProgress(step, steps, { loss }),
    })
    await local.saveModel(directory)
  } finally {
    await local.close()
  }
}
