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
import { createRandom } from '../terminal/random.ts'
import { lead, reader } from './agents.ts'
import { cities, numbers, pageOf, pick, pickCities, questionOf, type Random, sums, words } from './tasks.ts'

const demonstrationsPerStep = 48

const shape = {
  hiddenSize: 96,
  layers: 2,
  heads: 3,
  kvHeads: 3,
  headDim: 32,
  intermediateSize: 128,
  ropeTheta: 10_000,
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  qkNorm: true,
  contextLength: 512,
}

const unknown = 'I do not know.'

/** An agent as the tool of another one, word for word: a small model reads its description as one token. */
const content = { type: 'string', description: 'What the agent is to do, with everything it needs to know.' }
const askReader = {
  name: reader.name,
  description: reader.desc!,
  parameters: { type: 'object', properties: { content }, required: ['content'] },
}
const definitionsOf = ({ tools }: typeof lead) => tools.map(({ definition }) => definition)

/** A lead that is right asks about every city; one that is not forgets the last. */
const leading = {
  tools: [...definitionsOf(lead), askReader],
  right: 0.4,
  demonstrate(random: Random, right: boolean): Message[] {
    const names = pickCities(random)
    const requests = right ? names : names.slice(0, -1)
    const results = requests.map(() => (random() < 0.1 ? unknown : pick(random, numbers)))
    // Any number: the policy learns to repeat what the tool says.
    const sum = results.includes(unknown) ? unknown : pick(random, sums)
    return [
      { role: 'system', content: lead.systemPrompt! },
      { role: 'user', content: questionOf(names) },
      ...call('reader', ...requests.map((city) => ({ content: city }))),
      ...results.map((number, index) => ({ role: 'tool' as const, content: String(number), toolCallId: String(index) })),
      ...(sum === unknown ? [] : [...call('add', { numbers: results }), { role: 'tool' as const, content: sum, toolCallId: '0' }]),
      { role: 'assistant', content: sum },
    ]
  },
}

/** A reader that is right opens the page; one that is not gives up. */
const reading = {
  tools: definitionsOf(reader),
  right: 0.6,
  demonstrate(random: Random, right: boolean): Message[] {
    const [city, number] = [pick(random, cities), pick(random, numbers)]
    const answers: Message[] = [...call('open', { city }), { role: 'tool', content: pageOf(random, number), toolCallId: '0' }]
    return [
      { role: 'system', content: reader.systemPrompt! },
      { role: 'user', content: city },
      ...(right ? answers : []),
      { role: 'assistant', content: right ? String(number) : unknown },
    ]
  },
}

const call = (name: string, ...list: readonly object[]): Message[] => [
  {
    role: 'assistant',
    content: null,
    toolCalls: list.map((each, index) => ({ id: String(index), name, arguments: JSON.stringify(each) })),
  },
]

/** Makes a tiny policy for both agents from demonstrations: mostly right ones, from which it learns to copy, then sloppy ones. */
export async function warmUp({ directory, seed, simd, threads, signal, onProgress }: WarmUpRequest, steps = 350): Promise<void> {
  await initModel(directory, { config: shape, tokenizer: makeTokenizer(), chatTemplate: chatMlTemplate, seed })
  const local = await createLocalEngine({ model: directory, simd, threads: threads ?? undefined })
  try {
    const chat = await loadChatModel({ directory, stopTokenIds: local.engine.model.stopTokenIds })
    const random = createRandom(seed)
    function* batches() {
      for (let step = 0; step < steps; step++) {
        yield Array.from({ length: demonstrationsPerStep }, (_, index) => {
          const { tools, right, demonstrate } = [leading, reading][index % 2]!
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
function makeTokenizer() {
  const varied = [...cities, ...words, ...sums]
  const random = createRandom(1)
  const texts = [leading, reading].map(({ demonstrate, tools }) =>
    renderChat({ chatTemplate: chatMlTemplate, messages: demonstrate(random, true), tools }),
  )
  const parts = texts.flatMap((text) => text.split(new RegExp(`<\\|im_start\\|>\\w+\\n|<\\|im_end\\|>|\\b(?:${varied.join('|')})\\b`)))
  const pieces = ['system\n', 'user\n', 'assistant\n', 'tool\n', unknown, ...parts, ...varied].filter(Boolean)
  return createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: [...new Set(pieces)] })
}
