import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RolloutContext, RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer, chatMlTemplate, createVocabularyTokenizer, initModel } from 'aworld-train'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { durationOf } from './durations.ts'

const promptsPerStep = 16
const samplesPerPrompt = 8
/** A rollout of a second takes this part of it. */
const scale = 1 / 120
/** Steps that are measured; after them come those whose groups no later step overtakes. */
const measuredSteps = { 0: 12, 1: 80 } as const
const lastSteps = 5

interface CarryOver {
  /** Seconds of a step at full scale. */
  readonly stepSeconds: number
  /** Mean duration of the rollouts that were trained by that of all that had been started. */
  readonly trainedToStarted: number
  readonly staleness: number
  readonly mostStaleness: number
  readonly slotsUsed: number
  readonly unexplained: number
}

/**
 * A training whose agents make one model call and sleep: the loop, the runner, the gateway, the store and the engine are the real ones.
 * As many slots as rollouts of a step, so that a step without staleness ends with its longest rollout.
 */
export const carryOver: BenchSuite = {
  async run(args) {
    const seeds = args.length > 0 ? args.map(Number) : [1]
    const barrier: CarryOver[] = []
    const ahead: CarryOver[] = []
    for (const seed of seeds) {
      for (const maxStaleness of [0, 1] as const) {
        const result = await measure(seed, maxStaleness)
        ;(maxStaleness === 0 ? barrier : ahead).push(result)
        process.stdout.write(`seed ${seed}, maxStaleness ${maxStaleness}: ${JSON.stringify(result)}\n`)
      }
    }
    const of = (runs: readonly CarryOver[], read: (run: CarryOver) => number) => spreadOf(runs.map(read))
    const row = (measure: string, unit: string, better: BenchRow['better'], read: (run: CarryOver) => number): BenchRow => ({
      ...{ measure, unit, better, ours: of(ahead, read) },
      peers: { barrier: compare(of(ahead, read), of(barrier, read)) },
    })
    const difference = of(ahead, ({ trainedToStarted }) => Math.abs(1 - trainedToStarted))
    return {
      rows: [
        {
          ...row('step with maxStaleness 1', 's at full scale', 'lower', (run) => run.stepSeconds),
          bound: { atMost: 1 / 3.5, of: 'barrier' },
        },
        {
          ...{ measure: 'mean duration of trained rollouts from that of started ones', unit: 'fraction', better: 'lower' },
          ...{ ours: difference, peers: {}, bound: { atMost: 0.02 } },
        },
        row('slots used', 'fraction', 'higher', (run) => run.slotsUsed),
        { ...row('mean staleness', 'steps', 'lower', (run) => run.staleness), peers: {} },
        { ...row('greatest staleness', 'steps', 'lower', (run) => run.mostStaleness), peers: {} },
        { ...row('unexplained tokens', 'tokens', 'lower', (run) => run.unexplained), peers: {} },
      ],
      notes: [
        `seeds ${seeds.join(', ')}; ${promptsPerStep} prompts x ${samplesPerPrompt} samples a step, as many slots; durations lognormal with median 120 s and sigma 1, half of the log-variance from the prompt, 0.4 % hang for 1,800 s; time scaled by 1:${1 / scale}`,
        `the first ${measuredSteps[0]} steps with the barrier, the first ${measuredSteps[1]} of ${measuredSteps[1] + lastSteps} with maxStaleness 1`,
      ],
    }
  },
}

async function measure(seed: number, maxStaleness: 0 | 1): Promise<CarryOver> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-carry-over-'))
  try {
    await writeModel(join(directory, 'model'))
    const measured = measuredSteps[maxStaleness]
    const started = new Set<string>()
    let from = 0
    let to = 0
    const onEvent = (event: RunEvent) => {
      if (event.type === 'rollout-start' && event.split === 'train' && to === 0) started.add(event.rollout)
      else if (event.type === 'step-start' && event.step === 1) from = event.at
      else if (event.type === 'step-end' && event.step === measured) to = event.at
    }
    const trainer = await AgentTrainer.create({
      name: 'carry-over',
      agent: (_task: unknown, context: RolloutContext) => sleepingAgent(context, seed),
      trainDataset: Array.from({ length: 64 }, (_, index) => ({ id: `task-${index}`, prompt: `Say ${index}.`, answer: '1' })),
      rewardFunc: (_source: unknown, answer: string) => Number(answer),
      config: {
        model: { path: join(directory, 'model') },
        training: {
          steps: measured + (maxStaleness === 0 ? 0 : lastSteps),
          promptsPerStep,
          samplesPerPrompt,
          maxStaleness,
          checkpointEvery: null,
        },
        sampling: { maxTokens: 1 },
        concurrency: promptsPerStep * samplesPerPrompt,
      },
      trainEngineName: 'local',
      runPath: join(directory, 'runs'),
      seed,
      onEvent,
    })
    const report = await trainer.train<RunReport>()
    const run = readRun(report.path)
    const trained = run.rolloutRows({ split: 'train', limit: 1_000_000 }).rows.filter(({ step }) => step !== null && step <= measured)
    run.close()
    const curve = report.curve.slice(0, measured)
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
    const durations = (keys: Iterable<string>) => mean([...keys].map((key) => durationOf(key, seed)))
    return {
      stepSeconds: (to - from) / 1000 / measured / scale,
      trainedToStarted: durations(trained.map(({ key }) => key)) / durations(started),
      staleness: mean(curve.map(({ metrics }) => metrics!['staleness']!)),
      mostStaleness: Math.max(...curve.map(({ metrics }) => metrics!['mostStaleness']!)),
      slotsUsed: mean(curve.map(({ metrics }) => metrics!['slotsUsed']!)),
      unexplained: report.ledger?.unexplained ?? Number.NaN,
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Half of the samples of every group earn a reward, so that every group trains. */
async function sleepingAgent({ rollout, policy, signal }: RolloutContext, seed: number): Promise<string> {
  const { baseUrl, apiKey, model } = policy()
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Say a letter.' }] })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` }
  const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body, signal })
  if (!response.ok) throw new Error(`The gateway answered ${response.status}: ${await response.text()}`)
  await response.text()
  await sleep(durationOf(rollout, seed) * 1000 * scale, undefined, { signal })
  return String(Number(rollout.slice(rollout.lastIndexOf('/') + 1)) % 2)
}

async function writeModel(directory: string): Promise<void> {
  await initModel(directory, {
    config: {
      ...{ hiddenSize: 32, layers: 2, heads: 2, kvHeads: 1, headDim: 16, intermediateSize: 64, ropeTheta: 10_000, rmsNormEps: 1e-6 },
      ...{ tieWordEmbeddings: true, qkNorm: true, contextLength: 256 },
    },
    tokenizer: createVocabularyTokenizer({
      specialTokens: ['<|im_start|>', '<|im_end|>'],
      pieces: ['system\n', 'user\n', 'assistant\n', 'Say a letter.'],
    }),
    chatTemplate: chatMlTemplate,
    seed: 1,
  })
}
