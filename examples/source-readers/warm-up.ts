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
import { createRandom } from '../terminal/random.ts'
import { type Demonstrations, planning, reading, unknown } from './demonstrations.ts'
import { cities, sums, words } from './tasks.ts'

/** Makes the planner's starting policy. */
export const lead = (request: WarmUpRequest) => warmUp(request, [planning], 600)

/** Makes the readers' starting policy. */
export const reader = (request: WarmUpRequest) => warmUp(request, [reading], 200)

/** Of each agent, in a step. */
const demonstrationsPerAgent = 48

const shape = {
  hiddenSize: 96,
  layers: 2,
  heads: 3,
  kvHeads: 3,
  headDim: 32,
  intermediateSize: 232,
  ropeTheta: 10_000,
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  qkNorm: true,
  contextLength: 512,
}

/** Makes a tiny policy from demonstrations: mostly right ones, from which it learns to copy, then ones that mostly decide wrongly. */
export async function warmUp(request: WarmUpRequest, agents: readonly Demonstrations[], steps: number): Promise<void> {
  const { directory, seed, simd, threads, signal, onProgress } = request
  const tokenizer = makeTokenizer([...new Set([planning, reading, ...agents])])
  await initModel(directory, { config: shape, tokenizer, chatTemplate: chatMlTemplate, seed })
  const local = await createLocalEngine({ model: directory, simd, threads: threads ?? undefined })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const random = createRandom(seed)
    function* batches() {
      for (let step = 0; step < steps; step++) {
        yield Array.from({ length: demonstrationsPerAgent * agents.length }, (_, index) => {
          const { tools, right, demonstrate } = agents[index % agents.length]!
          return toWarmUpSamples({ chat, messages: demonstrate(random, random() < (step < 0.7 * steps ? 0.85 : right)), tools })
        }).flat()
      }
    }
    await trainSft({
      learner: local.learner,
      batches: batches(),
      steps,
      learningRate: 6e-3,
      warmupSteps: 10,
      finalLearningRateFraction: 0.1,
      signal,
      onStep: (step, { loss }) => onProgress(step, steps, { loss }),
    })
    await local.saveModel(directory)
  } finally {
    await local.close()
  }
}

/** What all conversations have in common is one token, and so is each word in which they differ. */
function makeTokenizer(agents: readonly Demonstrations[]) {
  const varied = [...cities, ...words, ...sums]
  const random = createRandom(1)
  const texts = agents.map(({ demonstrate, tools }) =>
    renderChat({ chatTemplate: chatMlTemplate, messages: demonstrate(random, true), tools }),
  )
  const parts = texts.flatMap((text) => text.split(new RegExp(`<\\|im_start\\|>\\w+\\n|<\\|im_end\\|>|\\b(?:${varied.join('|')})\\b`)))
  const pieces = ['system\n', 'user\n', 'assistant\n', 'tool\n', unknown, ...parts, ...varied].filter(Boolean)
  return createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: [...new Set(pieces)] })
}
