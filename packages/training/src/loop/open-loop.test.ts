import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import {
  type Episode,
  gspo,
  type Learner,
  type RolloutRequest,
  type RolloutRunner,
  type TrainingSample,
  type TrainingTask,
  taskHash,
  toTrainingSamples,
} from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { createDirectRunner } from '../testing/direct-runner.ts'
import { createMemoryStore } from '../testing/memory-store.ts'
import { OpenLoop } from './open-loop.ts'
import { trainSft } from './train-sft.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-open-loop-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const vocabulary = 9

/** Tasks 1 … 8. The right completion of token n is token n + 1 (8 wraps to 1). */
const tasks: TrainingTask[] = Array.from({ length: 8 }, (_, i) => {
  const data = { token: i + 1 }
  const input = `after ${i + 1}`
  return { version: 1 as const, id: `task-${i + 1}`, hash: taskHash({ input, data }), input, data, dataSource: 'count', extraInfo: {} }
})
const countUp = ({ task }: RolloutRequest, [first]: readonly number[]) => (first === ((task.data['token'] as number) % 8) + 1 ? 1 : 0)

const { config } = parseLocalConfig({
  training: { samplesPerPrompt: 8, checkpointEvery: 2 },
  sampling: { maxTokens: 1 },
  evaluation: { samplesPerPrompt: 4 },
})

type Store = ReturnType<typeof createMemoryStore>

interface ProcessOptions {
  readonly reward?: (request: RolloutRequest, completion: readonly number[]) => number | null
  readonly beforeRollout?: () => void
  /** Wraps each part that the loop works with. */
  readonly around?: <T extends object>(part: T) => T
  readonly training?: Partial<typeof config.training>
}

/** A process of a run: a new policy and runner over a store that outlives it. */
function startProcess(store: Store, { reward = countUp, beforeRollout, around = (part) => part, training = {} }: ProcessOptions = {}) {
  const { learner, engine } = createBigramPolicy(vocabulary)
  const runner: RolloutRunner = createDirectRunner({ engine, store, reward, beforeRollout })
  const signal = new AbortController().signal
  const loop = new OpenLoop({
    learner: around(learner),
    engine,
    runner: around(runner),
    store: around(store),
    config: { ...config, training: { ...config.training, ...training } },
    seed: 3,
    signal,
    onEvent: store.appendEvent,
  })
  return { loop, engine }
}

const succeeded = (episodes: readonly Episode[]) =>
  episodes.flatMap((episode) => (episode.reward === 1 ? toTrainingSamples(episode).samples : []))
const sft = (learner: Learner, samples: readonly TrainingSample[]) => trainSft({ learner, batches: [samples], steps: 1, learningRate: 20 })

const optimizer = { learningRate: 20, betas: [0.9, 0.98] as const, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 0 }

/** A runner whose episodes repeat the agent's turns as those of a second agent. */
function twoAgents<T extends object>(part: T): T {
  if (!('runAll' in part)) return part
  const runner = part as unknown as RolloutRunner
  const second = ({ turns, ...trajectory }: Episode['trajectories'][number]) => ({
    ...trajectory,
    id: 'second',
    agent: 'second',
    turns: turns.map((turn) => ({ ...turn, agent: 'second', trajectory: 'second' })),
  })
  const runAll: RolloutRunner['runAll'] = async (...all) =>
    (await runner.runAll(...all)).map((episode) => ({
      ...episode,
      trajectories: [...episode.trajectories, ...episode.trajectories.map(second)],
    }))
  return { ...runner, runAll } as unknown as T
}

/** Rejection sampling in six rounds, from the checkpoint or again from the start. */
async function train(loop: OpenLoop, from: 'checkpoint' | 'start' = 'start') {
  await loop.evaluate(tasks, 'before')
  for (let round = from === 'checkpoint' ? await loop.restore() : 0; round < 6; round++) {
    await sft(loop.learner, succeeded(await loop.rollout(tasks)))
    if (round === 2) await loop.evaluate(tasks, 'middle')
  }
  await loop.evaluate(tasks, 'after')
  return loop.result('finished')
}

const timeless = ({ curve, ...result }: Awaited<ReturnType<typeof train>>) => ({
  ...result,
  resumedFromStep: null,
  phasesMs: {},
  curve: curve.map(({ step, reward, metrics: { rolloutMs: _r, updateMs: _u, stepMs: _s, ...metrics } }) => ({ step, reward, metrics })),
})

describe('a loop whose steps somebody else makes', () => {
  it('takes a loss of one’s own in an update, and keeps the numbers that it names', async () => {
    const store = createMemoryStore(directory)
    const { loop } = startProcess(store)
    const episodes = await loop.rollout(tasks)
    const samples = episodes.flatMap((episode) =>
      toTrainingSamples(episode).samples.map((sample) => ({ ...sample, advantage: episode.reward! })),
    )
    const metrics = await loop.learner.update({ samples, loss: gspo(), optimizer })
    await loop.learner.publish()
    const { curve, ledger } = loop.result('finished')
    expect(metrics.named!['ratio']).toBeCloseTo(1, 5)
    expect(curve[0]!.metrics).toMatchObject({ 'loss/ratio': metrics.named!['ratio'], loss: metrics.loss, updates: 1 })
    expect(ledger).toMatchObject({ trained: samples.length, unexplained: 0 })
  })

  it('commits a step at each publish, with a curve, checkpoints and an account of every sampled token', async () => {
    const store = createMemoryStore(directory)
    const result = await train(startProcess(store).loop)
    expect(result.before!.reward).toBeLessThan(0.3)
    expect(result.after!.reward).toBeGreaterThan(0.7)
    expect(result.curve.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6])
    expect(result.curve.at(-1)!.reward).toBeGreaterThan(result.curve[0]!.reward + 0.3)
    expect(result.curve[0]!.metrics).toMatchObject({ rollouts: 64, sampledTokens: 64, updates: 1 })
    const kept = result.curve.reduce((sum, { reward }) => sum + reward * 64, 0)
    expect(result.ledger).toEqual({
      version: 1,
      sampled: 6 * 64 + 3 * 32,
      trained: kept,
      untrained: { 'unselected-by-trainer': 6 * 64 - kept, evaluation: 3 * 32 },
      unexplained: 0,
      withVariance: { sampled: expect.any(Number), trained: expect.any(Number) },
    })
    expect(result.ledger.withVariance.sampled).toBeGreaterThan(result.ledger.withVariance.trained)
    expect(store.steps().map(({ rollouts }) => rollouts.length)).toEqual(result.curve.map(({ reward }) => reward * 64))
    expect(readdirSync(join(directory, 'checkpoints')).sort()).toEqual(['step-000002', 'step-000004', 'step-000006'])
    expect(result.rollouts).toBe(6 * 64 + 3 * 32)
  })

  it('keeps what became of each row', async () => {
    const store = createMemoryStore(directory)
    const { curve, ledger } = await train(startProcess(store, { around: twoAgents }).loop)
    const tokens = (rows: typeof store.samples) => rows.reduce((sum, row) => sum + row.tokens, 0)
    for (const { step, metrics } of curve)
      expect(tokens(store.samples.filter((row) => row.step === step && row.reason === null))).toBe(metrics['trainedTokens'])
    expect(tokens(store.samples)).toBe(ledger.trained)
    expect(store.samples.every(({ trainerLogprobs }) => trainerLogprobs?.length === 1)).toBe(true)
    expect(new Set(store.samples.map(({ agent, turns }) => `${agent} ${turns}`))).toEqual(new Set(['agent 0', 'second 0']))
  })

  it('follows the same curve after it died at any point, and samples nothing twice', async () => {
    const whole = await train(startProcess(createMemoryStore(join(directory, 'whole'))).loop)
    for (const from of ['start', 'checkpoint'] as const) {
      for (const deaths of [[5], [40, 90], [200, 101, 92], [266], [450]]) {
        const store = createMemoryStore(join(directory, `${from}-${deaths.join('-')}`))
        let sampled = 0
        for (const rollouts of deaths) {
          let left = rollouts
          const { loop, engine } = startProcess(store, {
            beforeRollout() {
              if (left-- === 0) throw new Error('killed')
            },
          })
          await expect(train(loop, from)).rejects.toThrow('killed')
          sampled += engine.sampledTokens()
        }
        const { loop, engine } = startProcess(store)
        expect(timeless(await train(loop, from))).toEqual(timeless(whole))
        expect(sampled + engine.sampledTokens()).toBe(whole.ledger.sampled)
      }
    }
  })

  it('follows the same curve when it dies between an update, its checkpoint and its commit', async () => {
    const whole = await train(startProcess(createMemoryStore(join(directory, 'whole'))).loop)
    for (const [method, calls] of [
      ['update', 3],
      ['publish', 2],
      ['save', 1],
      ['commitStep', 3],
      ['setState', 4],
    ] as const) {
      const store = createMemoryStore(join(directory, method))
      let left = calls
      const around = <T extends object>(part: T): T =>
        new Proxy(part, {
          get(object, name, receiver) {
            const value = Reflect.get(object, name, receiver) as unknown
            if (name !== method || typeof value !== 'function') return value
            return (...args: unknown[]) => {
              if (left-- === 0) throw new Error('killed')
              return value.apply(object, args) as unknown
            }
          },
        })
      await expect(train(startProcess(store, { around }).loop)).rejects.toThrow('killed')
      expect(timeless(await train(startProcess(store).loop))).toEqual(timeless(whole))
    }
  })

  it('from its checkpoint repeats no update before that', async () => {
    const store = createMemoryStore(directory)
    let left = 5 * 64 + 40
    const dying = startProcess(store, {
      beforeRollout() {
        if (left-- === 0) throw new Error('killed')
      },
    })
    await expect(train(dying.loop)).rejects.toThrow('killed')
    let updates = 0
    const countUpdates = (learner: Learner): Learner => ({
      ...learner,
      async update(request) {
        updates++
        return await learner.update(request)
      },
    })
    const around = <T extends object>(part: T): T => ('update' in part ? (countUpdates(part as unknown as Learner) as unknown as T) : part)
    expect((await train(startProcess(store, { around }).loop, 'checkpoint')).steps).toBe(6)
    // Steps 1 to 4 are in the checkpoint.
    expect(updates).toBe(2)
  })

  it('counts tokens that are trained again, in the same step or later, once, and those of others not at all', async () => {
    const { loop } = startProcess(createMemoryStore(directory))
    const first = succeeded(await loop.rollout(tasks))
    const [row] = first as [TrainingSample]
    const demonstration = { ...row, provenance: { ...row.provenance, rollout: 'demonstration' } }
    await sft(loop.learner, [...first, demonstration, row])
    const second = succeeded(await loop.rollout(tasks))
    await sft(loop.learner, [...first, ...second.slice(0, 1)])
    await sft(loop.learner, second)
    const { ledger, curve } = loop.result('finished')
    const trained = first.length + second.length
    expect(ledger).toMatchObject({ sampled: 128, trained, untrained: { 'unselected-by-trainer': 128 - trained }, unexplained: 0 })
    expect(curve.map(({ metrics }) => metrics['trainedTokens'])).toEqual([first.length, 1])
  })

  it('marks a rollout as trained once where its rows are trained in two steps', async () => {
    const store = createMemoryStore(directory)
    const { loop } = startProcess(store, { around: twoAgents })
    const rows = succeeded(await loop.rollout(tasks))
    const of = (agent: string) => rows.filter((row) => row.agent === agent)
    await sft(loop.learner, of('agent'))
    await sft(loop.learner, of('second'))
    expect(store.steps().map(({ rollouts }) => rollouts.length)).toEqual([of('agent').length, 0])
  })

  it('samples with the published weights while those of the learner are ahead', async () => {
    const { loop } = startProcess(createMemoryStore(directory))
    const samples = succeeded(await loop.rollout(tasks))
    await loop.learner.update({ samples, loss: { kind: 'sft', aggregation: 'token-mean' }, optimizer })
    await loop.rollout(tasks)
    await loop.evaluate(tasks, 'ahead')
    await loop.learner.publish()
    await loop.rollout(tasks)
  })

  it('shows where more is trained than was sampled', async () => {
    const { loop } = startProcess(createMemoryStore(directory))
    const [row] = succeeded(await loop.rollout(tasks)) as [TrainingSample]
    const longer = { ...row, tokenIds: Int32Array.of(1, 2, 3), lossMask: Uint8Array.of(0, 1, 1), rolloutLogprobs: new Float32Array(3) }
    await sft(loop.learner, [longer])
    expect(loop.result('finished').ledger).toMatchObject({ trained: 2, unexplained: -1 })
  })

  it('refuses a name of an evaluation that was used, and in a later process returns what is recorded', async () => {
    const store = createMemoryStore(directory)
    const { loop } = startProcess(store)
    const [before, again] = await Promise.allSettled([loop.evaluate(tasks, 'before'), loop.evaluate(tasks, 'before')])
    expect(again).toMatchObject({
      reason: { code: 'ROLLOUT_CONFLICT', message: expect.stringMatching(/evaluation "before" was made.*such as "before-2"/) },
    })
    const later = startProcess(store)
    expect(await later.loop.evaluate(tasks, 'before')).toEqual((before as PromiseFulfilledResult<unknown>).value)
    expect(later.engine.sampledTokens()).toBe(0)
    expect(later.loop.result('finished').ledger).toMatchObject({ sampled: 32, unexplained: 0 })
  })

  it.each([
    ['maxStaleness', 2],
    ['firstSamples', 2],
    ['teachingPrompts', 4],
  ])('refuses %s, for groups that its caller forms', (key, value) => {
    expect(() => startProcess(createMemoryStore(directory), { training: { [key]: value } })).toThrow(
      `training.${key} is ${value}, which is for trainers that run our own loop (local, tinker): here the trainer asks for its groups itself. Leave it out.`,
    )
  })

  it('refuses to evaluate no tasks, whose mean is no number', async () => {
    const { loop } = startProcess(createMemoryStore(directory))
    await expect(loop.evaluate([], 'before')).rejects.toMatchObject({
      code: 'DATASET_INVALID',
      message: expect.stringContaining('"before"'),
    })
  })

  it('refuses to make a committed step again with other tasks, or after other updates', async () => {
    const store = createMemoryStore(directory)
    const { loop } = startProcess(store)
    await sft(loop.learner, succeeded(await loop.rollout(tasks)))
    await sft(loop.learner, succeeded(await loop.rollout(tasks)))
    await expect(startProcess(store).loop.rollout(tasks.toReversed())).rejects.toMatchObject({
      code: 'STORE_CONFLICT',
      message: expect.stringMatching(/Step 1 .*other rollouts.*--new/),
    })
    const other = startProcess(store).loop
    await sft(other.learner, succeeded(await other.rollout(tasks)).slice(1))
    await expect(other.rollout(tasks)).rejects.toMatchObject({
      code: 'POLICY_LOGPROB_MISMATCH',
      message: expect.stringMatching(/before step 2 .*otherwise.*--new/),
    })
  })

  it('refuses rollouts that all failed, counts them, and makes new ones in the next process', async () => {
    const store = createMemoryStore(directory)
    const broken = startProcess(store, { reward: () => null })
    await expect(broken.loop.rollout(tasks)).rejects.toMatchObject({ code: 'TRAINER_EMPTY_BATCH', message: expect.stringContaining('64') })
    const { loop } = startProcess(store)
    await sft(loop.learner, succeeded(await loop.rollout(tasks)))
    const { ledger, episodesByStopReason } = loop.result('finished')
    expect(ledger).toMatchObject({ sampled: 128, unexplained: 0, untrained: { 'failed-episode': 64 } })
    expect(episodesByStopReason).toEqual({ failed: 64, completed: 64 })
    expect(timeless(await train(startProcess(store).loop)).ledger.unexplained).toBe(0)
  })

  it('draws new random numbers for every call, and ends a step after all its rollouts', async () => {
    const { loop } = startProcess(createMemoryStore(directory))
    const answers = (episodes: readonly Episode[]) => episodes.map(({ answer }) => answer)
    const [one, two] = await Promise.all([loop.rollout(tasks), loop.rollout(tasks)])
    expect(answers(two)).not.toEqual(answers(one))
    const third = loop.rollout(tasks)
    await loop.learner.publish()
    const { curve, rollouts } = loop.result('stopped')
    expect({ curve: curve.length, rollouts }).toEqual({ curve: 1, rollouts: 3 * 64 })
    expect(answers(await third)).not.toEqual(answers(one))
  })

  it('is not ended by a rejection that nobody waits for', async () => {
    const { loop } = startProcess(createMemoryStore(directory), { reward: () => null })
    void loop.rollout(tasks)
    await loop.learner.publish()
    await setImmediate()
  })
})
