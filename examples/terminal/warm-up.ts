import {
  chatMlTemplate,
  createEnvironment,
  createLocalEngine,
  createVocabularyTokenizer,
  initModel,
  loadChatModel,
  type Message,
  renderChat,
  type Tools,
  toWarmUpSamples,
  trainSft,
  type WarmUpRequest,
} from 'aworld-train'
import { agent, execute } from './agent.ts'
import { createRandom } from './random.ts'
import { commandFor, items, lineOf, numbers, questionOf } from './tasks.ts'

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
  contextLength: 512,
}

const unknown = 'I do not know.'

type ToolDefinition = Awaited<ReturnType<Tools['list']>>[number]

/** Makes a tiny policy from demonstrations: mostly right ones, from which it learns to copy, then mostly wrong ones. */
export async function warmUp({ directory, seed, simd, threads, signal, onProgress }: WarmUpRequest): Promise<void> {
  const tools = await listTools(signal)
  await initModel(directory, { config: shape, tokenizer: makeTokenizer(tools), chatTemplate: chatMlTemplate, seed })
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

/** The tools as the agent will see them, word for word: a small model reads their description as one token. */
async function listTools(signal: AbortSignal): Promise<readonly ToolDefinition[]> {
  const environment = createEnvironment()
  try {
    const lease = environment.lease({ rollout: 'warm-up', attempt: 0, sample: 0, task: { id: 'warm-up' } })
    const { name, mcpConfig, mcpServers, blackToolActions: hiddenTools } = agent
    const tools = await lease.tools({ agent: name ?? 'agent', mcpConfig: mcpConfig!, mcpServers, hiddenTools }, signal)
    return await tools.list()
  } finally {
    await environment.close()
  }
}

/** A question and what is made of it, over random numbers. A wrong demonstration gives up: at once, or in spite of what the terminal says. */
function demonstrate(random: () => number, right: number): Message[] {
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] as string
  const [item, number, draw] = [pick(items), pick(numbers), random()]
  const question: Message[] = [
    { role: 'system', content: agent.systemPrompt ?? null },
    { role: 'user', content: questionOf(item) },
  ]
  const call = { id: 'call', name: execute, arguments: JSON.stringify({ command: commandFor(item) }) }
  const answered: Message[] = [
    { role: 'assistant', content: null, toolCalls: [call] },
    { role: 'tool', content: outputOf(lineOf(item, number)), toolCallId: call.id },
  ]
  const calls = draw < (1 + right) / 2
  return [...question, ...(calls ? answered : []), { role: 'assistant', content: draw < right ? number : unknown }]
}

/** What the terminal answers to a command that prints one line. */
const outputOf = (line: string) => `\`\`\`\n${line}\n\`\`\`\n\n[Exit code 0.]`

/** What all conversations have in common is one token, and so is each word in which they differ. */
function makeTokenizer(tools: readonly ToolDefinition[]) {
  const words = [...items, ...numbers]
  const text = renderChat({ chatTemplate: chatMlTemplate, messages: demonstrate(() => 0.5, 1), tools })
  const parts = text.split(new RegExp(`<\\|im_start\\|>\\w+\\n|<\\|im_end\\|>|\\b(?:${words.join('|')})\\b`))
  const pieces = ['system\n', 'user\n', 'assistant\n', 'tool\n', unknown, ...parts, ...words].filter(Boolean)
  return createVocabularyTokenizer({ specialTokens: ['<|im_start|>', '<|im_end|>'], pieces: [...new Set(pieces)] })
}
