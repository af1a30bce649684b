import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorMessage, type RunEvent, type RunReport, TrainError } from '@aworld-train/core'
import { readLedger, type Trainer } from '@aworld-train/trainers/shared'
import {
  AgentTrainer,
  type AgentTrainerOptions,
  chatMlTemplate,
  createVocabularyTokenizer,
  type DoctorCheck,
  initModel,
} from 'aworld-train'

export interface SmokeOptions {
  readonly trainer: Trainer
  /** Folder of the Python environment. */
  readonly projectDirectory: string
  readonly onCheck: (check: DoctorCheck) => void
  readonly signal: AbortSignal
}

const steps = 2
const tolerance = 1e-4

/** Trains a random model for two steps with the real framework on this machine's processor, and checks the resulting run. */
export async function smokeTraining({ trainer, projectDirectory, onCheck, signal }: SmokeOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-smoke-'))
  const say = (name: string, ok: boolean, message: string) => onCheck({ name, ok, message })
  const startedAt = performance.now()
  let keep = false
  try {
    const model = join(folder, 'model')
    await makeModel(model)
    const report = await train({ trainer, model, folder, projectDirectory, say, startedAt, signal })
    say(...judgeTokens(trainer.name, report))
    say(...judgeLogprobs(await logprobDifferences(report.path)))
    say(
      'smoke',
      report.status === 'finished',
      `${trainer.name} ${report.status} ${steps} steps after ${seconds(performance.now() - startedAt)}`,
    )
    keep = report.status !== 'finished'
  } catch (error) {
    if (signal.aborted) throw error
    keep = true
    const message = error instanceof TrainError ? `${error.code}: ${error.message}` : errorMessage(error)
    say('smoke', false, `${message}\nIts files are kept in ${folder}`)
  } finally {
    if (!keep) await rm(folder, { recursive: true, force: true })
  }
}

interface TrainInput {
  readonly trainer: Trainer
  readonly model: string
  readonly folder: string
  readonly projectDirectory: string
  readonly say: (name: string, ok: boolean, message: string) => void
  readonly startedAt: number
  readonly signal: AbortSignal
}

async function train({ trainer: framework, model, folder, projectDirectory, say, startedAt, signal }: TrainInput): Promise<RunReport> {
  let ready = false
  const onEvent = (event: RunEvent) => {
    if (!ready && (event.type === 'rollout-start' || event.type === 'step-start')) {
      ready = true
      say('start', true, `${framework.name} and the bridge were ready after ${seconds(performance.now() - startedAt)}`)
    }
    if (event.type === 'step-end') say(`step ${event.step}`, true, stepText(event.metrics))
  }
  const trainer = await AgentTrainer.create({
    ...definition(framework, model),
    runPath: join(folder, 'runs'),
    baseDirectory: projectDirectory,
    fresh: true,
    onEvent,
  })
  return await trainer.train<RunReport>(signal)
}

/** Makes an untrained model that samples any byte. */
async function makeModel(directory: string): Promise<void> {
  await initModel(directory, {
    config: {
      hiddenSize: 32,
      layers: 2,
      heads: 2,
      kvHeads: 1,
      headDim: 16,
      intermediateSize: 64,
      ropeTheta: 10_000,
      rmsNormEps: 1e-6,
      tieWordEmbeddings: true,
      qkNorm: true,
      contextLength: 256,
    },
    tokenizer: createVocabularyTokenizer({
      specialTokens: ['<|im_start|>', '<|im_end|>'],
      pieces: ['system\n', 'user\n', 'assistant\n', 'Say letters', ' more'],
    }),
    chatTemplate: chatMlTemplate,
    seed: 1,
  })
}

/** Two calls of one conversation, scored by the share of letters. */
function definition(trainer: Trainer, model: string): AgentTrainerOptions {
  return {
    name: 'smoke',
    trainEngineName: trainer.name,
    agent: async ({ input }, { baseUrl, apiKey, signal }) => {
      const messages = typeof input === 'string' ? [{ role: 'user', content: input }] : [...input]
      let text = ''
      for (let call = 0; call < 2; call++) {
        const response = await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'policy', messages }),
          signal,
        })
        if (!response.ok) throw new Error(`The gateway answered ${response.status}: ${await response.text()}`)
        const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
        const content = choices[0]?.message.content ?? ''
        text += content
        messages.push({ role: 'assistant', content }, { role: 'user', content: 'Say letters more' })
      }
      return text
    },
    trainDataset: Array.from({ length: 8 }, (_, index) => ({
      id: `smoke-${index}`,
      prompt: [{ role: 'user', content: `Say letters${' more'.repeat(index % 4)}` }],
      data_source: 'smoke',
      answer: 'letters',
    })),
    rewardFunc: (_dataSource: string, solution: string) => (solution.match(/[a-z]/gi)?.length ?? 0) / Math.max(1, solution.length),
    config: {
      training: { steps, promptsPerStep: 2, samplesPerPrompt: 4, learningRate: 1e-3, evaluateEvery: null, checkpointEvery: null },
      sampling: { temperature: 1 },
      maxCompletionTokens: 8,
      logprobCheck: { tolerance },
      ...trainer.smokeConfig(model),
    },
  }
}

function stepText(metrics: Readonly<Record<string, number>>): string {
  const phases = ['rollout', 'logprobs', 'update', 'weightSync', 'other'].flatMap((phase) => {
    const ms = metrics[`${phase}Ms`]
    return ms === undefined ? [] : [`${phase} ${seconds(ms)}`]
  })
  const reward = metrics['rewardMean']
  return `${phases.join(', ') || 'no times were told'}; reward ${reward === undefined ? 'not scored' : reward.toFixed(2)}`
}

function judgeTokens(trainer: string, { ledger }: RunReport): [string, boolean, string] {
  if (ledger === null) return ['tokens', false, `${trainer} left no count of what it trained`]
  const { sampled, trained, untrained, unexplained } = ledger
  const reasons = Object.entries(untrained).map(([reason, tokens]) => `${tokens} ${reason}`)
  const rest = reasons.length > 0 ? ` (${reasons.join(', ')})` : ''
  return ['tokens', unexplained === 0 && trained > 0, `${sampled} sampled, ${trained} trained${rest}, ${unexplained} unexplained`]
}

/** For each step, the largest difference of a sampled token's logprob between sampling and training. */
async function logprobDifferences(path: string): Promise<number[]> {
  const incarnations = await readdir(join(path, 'ledger')).catch(() => [])
  return incarnations.flatMap((incarnation) =>
    readLedger(path, incarnation).trained.flatMap(({ maxLogprobDifference }) =>
      maxLogprobDifference === null ? [] : [maxLogprobDifference],
    ),
  )
}

function judgeLogprobs(differences: readonly number[]): [string, boolean, string] {
  const largest = Math.max(...differences)
  if (differences.length < steps) return ['logprobs', false, `were compared in ${differences.length} of ${steps} steps`]
  return ['logprobs', largest <= tolerance, `of sampling and training differ by at most ${largest.toExponential(1)} (limit ${tolerance})`]
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
