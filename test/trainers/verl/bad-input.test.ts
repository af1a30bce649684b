// What goes wrong beside the real verl: agents, lengths, and processes of Ray that die. Each ends in an error or a record.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Episode, parseChannelKey, type TokenLedger } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { readLedger, type TrainedLine } from '@aworld-train/trainers/shared'
import { AgentTrainer, type RunEvent } from 'aworld-train'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'
import { faultyAgent, unevenAgent } from './bad-input/agent.ts'

const maxPromptTokens = 160
const maxResponseTokens = 64

let folder: string

beforeAll(async () => {
  process.env['AWORLD_TRAIN_PYTHON'] = await verlEnvironment()
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-bad-input-'))
}, 900_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const rows = (...names: readonly string[]) =>
  names.map((name, index) => ({ id: `${name}-${index}`, prompt: `What is element ${index + 1}?`, answer: 'x', data_source: 'faults' }))

interface Outcome {
  readonly error: { readonly code: string; readonly message: string } | null
  readonly path: string
  readonly events: readonly RunEvent[]
  readonly episodes: readonly Episode[]
  readonly trained: readonly TrainedLine[]
  readonly ledger: { readonly ledger: TokenLedger; readonly trainedTwice: readonly string[] }
  /** From the moment `onEvent` returned true to the end, in ms. */
  readonly endedAfterMs: number
}

/** Trains until the end, whatever that is. */
async function train(name: string, options: object, config: object, isFault: (event: RunEvent) => boolean): Promise<Outcome> {
  const events: RunEvent[] = []
  let faultAt = Number.NaN
  const trainer = new AgentTrainer({
    agent: faultyAgent,
    rewardFunc: (_source: string, solution: string) => 0.2 + (solution.length % 5) / 10,
    baseDirectory: folder,
    runPath: folder,
    name,
    onEvent(event) {
      events.push(event)
      if (Number.isNaN(faultAt) && isFault(event)) faultAt = Date.now()
    },
    config: {
      training: { promptsPerStep: 2, samplesPerPrompt: 2, learningRate: 1e-4, evaluateEvery: null, checkpointEvery: null },
      data: { max_prompt_length: maxPromptTokens, max_response_length: maxResponseTokens, shuffle: false },
      actor_rollout_ref: { model: { path: join(repository, 'examples/periodic-table/model') } },
      ...config,
    },
    ...options,
  })
  const error = await trainer.train().then(
    () => null,
    (thrown) => thrown,
  )
  const path = join(folder, (await readdir(folder)).find((each) => each.startsWith(name)) as string)
  const run = await readRun(path)
  const episodes = Array.from(run.episodes())
  run.close()
  const incarnations = await readdir(join(path, 'ledger')).catch(() => [])
  return {
    error,
    path,
    events,
    episodes,
    trained: incarnations.flatMap((incarnation) => readLedger(path, incarnation).trained),
    ledger: JSON.parse(await readFile(join(path, 'ledger.json'), 'utf8')),
    endedAfterMs: Date.now() - faultAt,
  }
}

/** Ends the process of Ray with that name among those of a run. */
async function killRayProcess(path: string, name: string): Promise<void> {
  for (const pid of (await readdir('/proc')).filter((each) => /^\d+$/.test(each))) {
    const [command, environment] = await Promise.all(
      ['cmdline', 'environ'].map((file) => readFile(join('/proc', pid, file), 'latin1').catch(() => '')),
    )
    if (command!.startsWith(`ray::${name}`) && environment!.includes(`AWORLD_TRAIN_RUN_PATH=${path}`)) {
      process.kill(Number(pid), 'SIGKILL')
      return
    }
  }
  throw new Error(`No process of Ray is called ${name}.`)
}

const groupsOf = ({ trained }: Outcome, step: number) => {
  const keys = trained.filter((line) => line.step === step).flatMap((line) => line.keys.map(({ key }) => key))
  return Map.groupBy(keys, (key) => parseChannelKey(key)!.uid)
}

/** What verl itself says of the mean of a step is that of the rollouts in its batch. The step in which a process died may have trained, and never ended. */
function expectMeans({ trained, episodes, events }: Outcome): void {
  const rewards = new Map(episodes.map(({ rollout, reward }) => [rollout, reward]))
  const ended = events.filter((event) => event.type === 'step-end') as readonly { step: number; metrics: Record<string, number> }[]
  expect(ended.map(({ step }) => step)).toEqual(ended.map((_, index) => index + 1))
  expect(trained.length - ended.length).toBeOneOf([0, 1])
  for (const { rowsPadded } of trained) expect(rowsPadded).toBe(0)
  for (const { step, metrics } of ended) {
    const keys = trained.filter((line) => line.step === step).flatMap((line) => line.keys)
    const mean = keys.reduce((sum, { key }) => sum + rewards.get(key)!, 0) / keys.length
    expect(metrics['rewardMean']).toBeCloseTo(mean, 5)
  }
}

describe('agents that fail, and a rollout server that dies in the third step', () => {
  let outcome: Outcome
  beforeAll(async () => {
    outcome = await train(
      'faults',
      {
        trainDataset: rows(
          'good',
          'throws',
          'hangs',
          'silent',
          'prompt',
          'flood',
          'good',
          'response',
          'good',
          ...Array<string>(24).fill('good'),
        ),
        testDataset: rows('good', 'throws', 'silent'),
      },
      {
        training: {
          ...{ promptsPerStep: 2, samplesPerPrompt: 2, learningRate: 1e-4, steps: 12 },
          ...{ evaluateEvery: 12, checkpointEvery: null },
        },
        smoke: true,
        limits: { timeoutMs: 2_500 },
        group: { maxReplaced: 6 },
      },
      (event) => {
        if (event.type !== 'step-end' || event.step !== 2) return false
        void killRayProcess(folder, 'CpuServer')
        return true
      },
    )
  }, 300_000)

  const of = (name: string) => outcome.episodes.filter(({ taskId, split }) => taskId.startsWith(name) && split === 'train')
  const first = (name: string) => of(name).find(({ rollout }) => rollout.endsWith('/0'))

  it('names what happened to each rollout', () => {
    expect(first('throws')).toMatchObject({
      stopReason: 'failed',
      reward: null,
      error: { code: 'AGENT_FAILED', message: expect.stringContaining('The agent threw.') },
    })
    expect(first('hangs')).toMatchObject({ stopReason: 'time-limit' })
    expect(first('silent')).toMatchObject({ stopReason: 'no-model-call' })
    expect(first('prompt')!.trajectories[0]!.turns[0]!.promptTokenIds.length).toBeGreaterThan(maxPromptTokens)
    expect(first('flood')!.trajectories.flatMap(({ turns }) => turns)).toEqual([])
    expect(first('response')).toMatchObject({ stopReason: expect.stringMatching(/^(truncated|context-overflow)$/) })
  })

  it('replaces whole groups: no member of one with a fault is trained, and none is made up', () => {
    const trained = outcome.trained.flatMap(({ keys }) => keys)
    const rollouts = new Set(outcome.episodes.map(({ rollout }) => rollout))
    expect(trained.filter(({ key }) => !rollouts.has(key))).toEqual([])
    const faulty = ['throws', 'hangs', 'silent', 'prompt', 'flood'].flatMap(of).map(({ rollout }) => rollout)
    expect(faulty).toHaveLength(10)
    expect(trained.filter(({ key }) => faulty.includes(key))).toEqual([])
    for (const step of [1, 2]) expect(Array.from(groupsOf(outcome, step).values(), (keys) => keys.length)).toEqual([2, 2])
    expectMeans(outcome)
  })

  it('trains a response that was cut, and no more of it than a row may have', () => {
    const { rollout } = first('response')!
    const row = outcome.trained.flatMap(({ keys }) => keys).find(({ key }) => key === rollout)
    expect(row!.maskTokens).toBeGreaterThan(0)
    expect(row!.maskTokens).toBeLessThanOrEqual(maxResponseTokens)
  })

  it('scores a validation rollout that failed 0, and counts it', () => {
    const event = outcome.events.find(({ type }) => type === 'evaluation-end') as { metrics: Record<string, number> } | undefined
    expect(event!.metrics['rollouts']).toBe(3)
    const scored = outcome.episodes.find(({ taskId, split }) => split === 'test' && taskId === 'good-0')!.reward!
    expect(event!.metrics['reward']).toBeCloseTo(scored / 3, 5)
  })

  it('ends with an error that names the process, soon after it died', () => {
    expect(outcome.error).toMatchObject({ code: 'TRAINER_PROCESS_DIED', message: expect.stringMatching(/run the same command again/) })
    expect(outcome.endedAfterMs).toBeLessThan(90_000)
  })

  it('accounts for every token', () => {
    expect(outcome.ledger.ledger.unexplained).toBe(0)
    expect(outcome.ledger.trainedTwice).toEqual([])
  })
})

describe('weights that change in the middle of turns, and a worker that dies with its rollouts', () => {
  let outcome: Outcome
  beforeAll(async () => {
    outcome = await train(
      'worker',
      { agent: unevenAgent, trainDataset: rows(...Array<string>(64).fill('good')) },
      {
        training: { promptsPerStep: 4, samplesPerPrompt: 4, learningRate: 1e-4, steps: 12, evaluateEvery: null, checkpointEvery: null },
        data: { max_prompt_length: maxPromptTokens, max_response_length: 640, shuffle: false },
        trainer: { val_before_train: false },
        smoke: true,
        layout: { mode: 'hybrid', schedule: 'colocate_async' },
      },
      (event) => {
        if (event.type !== 'step-end' || event.step !== 4) return false
        void killRayProcess(folder, 'AgentLoopWorkerTQ')
        return true
      },
    )
  }, 300_000)

  it('says which turns two versions sampled, and their rows span both', () => {
    const turns = outcome.episodes.flatMap(({ trajectories }) => trajectories.flatMap((each) => each.turns))
    const mixed = turns.filter((turn) => turn.mixedVersions)
    console.log(`${mixed.length} of ${turns.length} turns were sampled by two versions of weights`)
    expect(mixed.length).toBeGreaterThan(0)
    for (const { mixedVersions } of mixed) expect(mixedVersions!.highest).toBeGreaterThan(mixedVersions!.lowest)
  })

  it('compares logprobs of the rows that the newest weights sampled, and of no others', () => {
    const differences = outcome.trained.map(({ maxLogprobDifference }) => maxLogprobDifference)
    expect(differences[0]).toBeGreaterThan(0)
    for (const difference of differences) expect(difference ?? 0).toBeLessThanOrEqual(1e-4)
  })

  it('ends with an error that names the process, soon after it died', () => {
    expect(outcome.error).toMatchObject({ code: 'TRAINER_PROCESS_DIED', message: expect.stringMatching(/run the same command again/) })
    expect(outcome.endedAfterMs).toBeLessThan(90_000)
  })

  it('accounts for every token', () => {
    expect(outcome.ledger.ledger.unexplained).toBe(0)
    expect(outcome.ledger.ledger.trained).toBeGreaterThan(0)
  })
})

describe('rollouts that all fail', () => {
  it('end the run at the limit, with what most of them failed of', async () => {
    const outcome = await train(
      'all-fail',
      { agent: () => Promise.reject(new Error('No tool answers.')), trainDataset: rows(...Array<string>(64).fill('good')) },
      {
        trainer: { val_before_train: false },
        training: { promptsPerStep: 2, samplesPerPrompt: 2, steps: 2 },
        smoke: true,
        group: { maxReplaced: 4 },
      },
      () => false,
    )
    expect(outcome.error).toMatchObject({
      code: 'TRAINER_EMPTY_BATCH',
      message: expect.stringMatching(/which is the limit[\s\S]*Most often \(\d+ rollouts\):.*No tool answers/),
    })
    expect(outcome.trained).toEqual([])
    expect(outcome.ledger.ledger).toMatchObject({ trained: 0, unexplained: 0 })
  }, 300_000)
})
