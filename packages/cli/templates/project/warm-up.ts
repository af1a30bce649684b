import {
  chatMlTemplate,
  createLocalEngine,
  createVocabularyTokenizer,
  initModel,
  loadChatModel,
  type Message,
  renderChat,
  toWarmUpSamples,
  trainSft,
  type WarmUpRequest,
} from 'aworld-train'
import { agent, lookUp, stock } from './agent.ts'

const steps = 300
const demonstrationsPerStep = 32

const shape = {
  hiddenSize: 64,
  layers: 2,
  heads: 2,
  kvHeads: 2,
  headDim: 32,
  intermediateSize: 128,
  ropeTheta: 10_000,
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  qkNorm: true,
  contextLength: 256,
}

const tools = [lookUp.definition]
const cities = Object.keys(stock)
const items = Object.keys(stock[cities[0] as string] as object)
const unknown = 'I do not know.'
const numbers = Array.from({ length: 40 }, (_, number) => String(number))

/** Makes a tiny policy from demonstrations: mostly right ones, from which it learns to copy, then mostly wrong ones. */
export async function warmUp({ directory, seed, simd, threads, signal, onProgress }: WarmUpRequest): Promise<void> {
  await initModel(directory, { config: shape, tokenizer: makeTokenizer(), chatTemplate: chatMlTemplate, seed })
  const local = await createLocalEngine({ model: directory, simd, threads: threads ?? undefined })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const random = createRandom(seed)
    function* batches() {
      for (let step = 0; step < steps; step++) {
        const right = step < 0.7 * steps ? 0.85 : 0.3
        const shown = Array.from({ length: demonstrationsPerStep }, () => demonstrate(random, right))
        yield shown.flatMap((messages) => toWarmUpSamples({ chat, messages, tools }))
      }
    }
    await trainSft({
      learner: local.learner,
      batches: batches(),
      steps,
      learningRate: 4e-3,
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

/** A question and its answer, from random numbers. A wrong demonstration gives up, at once or although the tool has answered. */
function demonstrate(random: () => number, right: number): Message[] {
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] as string
  const [item, city, number, draw] = [pick(items), pick(cities), pick(numbers), random()]
  const question: Message[] = [
    { role: 'system', content: agent.systemPrompt ?? null },
    { role: 'user', content: `How many ${item} are in ${city}?` },
  ]
  const call = { id: 'call', name: lookUp.name, arguments: JSON.stringify({ item, city }) }
  const lookup: Message[] = [
    { role: 'assistant', content: null, toolCalls: [call] },
    { role: 'tool', content: number, toolCallId: call.id },
  ]
  const calls = draw < (1 + right) / 2
  return [...question, ...(calls ? lookup : []), { role: 'assistant', content: draw < right ? number : unknown }]
}

/** The text that all conversations share is one token, and so is each word in which they differ. */
function makeTokenizer() {
  const words = [...items, ...cities, ...numbers]
  const text = renderChat({ chatTemplate: chatMlTemplate, messages: demonstrate(() => 0.5, 1), tools })
  const parts = text.split(new RegExp(`<\\|im_start\\|>\\w+\\n|<\\|im_end\\|>|\\b(?:${words.join('|')})\\b`))
  const pieces = ['system\n', 'user\n', 'assistant\n', 'tool\n', unknown, ...parts, ...words].filter(Boolean)
  return createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: [...new Set(pieces)] })
}

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
