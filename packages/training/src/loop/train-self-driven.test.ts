import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Episode,
  groupAdvantages,
  gspo,
  type PolicyLoss,
  type RolloutRequest,
  type RolloutRunner,
  type RunEvent,
  type TrainingTask,
  taskHash,
} from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { createDirectRunner } from '../testing/direct-runner.ts'
import { createMemoryStore } from '../testing/memory-store.ts'
import type { SelfDrivenOptions } from './self-driven-options.ts'
import { trainSelfDriven } from './train-self-driven.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-loop-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const vocabulary = 9

/** Tasks 1 … 8. The right completion of token n is token n + 1 (8 wraps to 1). */
function makeTasks(from: number, to: number): TrainingTask[] {
  return Array.from({ length: to - from + 1 }, (_, i) => {
    const data = { token: from + i }
    const input = `after ${from + i}`
    const extraInfo = { kind: i % 2 === 0 ? 'even' : 'odd' }
    return { version: 1 as const, id: `task-${from + i}`, hash: taskHash({ input, data }), input, data, dataSource: 'count', extraInfo }
  })
}

const countUp = ({ task }: RolloutRequest, [first]: readonly number[]) => (first === ((task.data['token'] as number) % 8) + 1 ? 1 : 0)

const training = { steps: 12, promptsPerStep: 4, samplesPerPrompt: 8, learningRate: 8, warmupSteps: 2, checkpointEvery: 5, passes: 2 }
const makeConfig = (override: object = {}) =>
  parseLocalConfig({
    training: { ...training, evaluateEvery: 4, ...override },
    sampling: { maxTokens: 1 },
    evaluation: { samplesPerPrompt: 4, kindKey: 'kind' },
  }).config

/** A process of a run: a new policy and runner over a store that outlives it. */
function startProcess(
  store: ReturnType<typeof createMemoryStore>,
  options: Partial<SelfDrivenOptions> & { reward?: typeof countUp | (() => null) } = {},
) {
  const { learner, engine } = createBigramPolicy(vocabulary)
  const { reward = countUp, ...rest } = options
  const tasks = makeTasks(1, 8)
  return trainSelfDriven({
    learner,
    engine,
    runner: createDirectRunner({ engine, store, reward }),
    store,
    tasks,
    evaluation: { test: tasks, validation: tasks.slice(0, 4) },
    config: makeConfig(),
    seed: 3,
    signal: new AbortController().signal,
    onEvent: store.appendEvent,
    ...rest,
  })
}

/** A process whose training episodes are changed before the loop sees them; `index` is the position in the step. */
function startChanged(store: ReturnType<typeof createMemoryStore>, change: (episode: Episode, index: number) => Episode, training: object) {
  const { learner, engine } = createBigramPolicy(vocabulary)
  const runner = createDirectRunner({ engine, store, reward: countUp })
  const changed: RolloutRunner = {
    ...runner,
    run: async (request, signal) => change(await runner.run(request, signal), request.sample % 32),
  }
  return startProcess(store, { learner, engine, runner: changed, evaluation: {}, config: makeConfig(training) })
}

const tooLong = (episode: Episode): Episode => ({
  ...episode,
  trajectories: [],
  reward: null,
  stopReason: 'context-overflow',
  error: { code: 'POLICY_CONTEXT_OVERFLOW', boundary: 'policy', retryable: false, message: 'The conversation has 600 tokens.' },
})

const warningsOf = (store: ReturnType<typeof createMemoryStore>) =>
  store.events.flatMap((event) => (event.type === 'warning-raised' ? [[event.code, event.message]] : []))

const curveOf = ({ curve }: Awaited<ReturnType<typeof startProcess>>) =>
  curve.map(({ step, reward, metrics }) => [
    step,
    reward,
    metrics['loss'],
    metrics['gradNorm'],
    metrics['trainedTokens'],
    metrics['sampledTokens'],
  ])

describe('trainSelfDriven', () => {
  it('learns, evaluates before and after, and accounts for every sampled token', async () => {
    const result = await startProcess(createMemoryStore(directory))
    expect(result.status).toBe('finished')
    expect(result.before!.reward).toBeLessThan(0.3)
    expect(result.after!.reward).toBeGreaterThan(0.8)
    expect(result.greedyAfter!.reward).toBe(1)
    expect(Object.keys(result.after!.byKind)).toEqual(['even', 'odd'])
    expect(result.curve.map(({ step }) => step)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1))
    expect(result.ledger.unexplained).toBe(0)
    // Each rollout has one token: 12 steps of 32, twice 8 tasks of 4 samples and of 1 greedy one, 3 validations of 16.
    expect(result.ledger.sampled).toBe(12 * 32 + 2 * (32 + 8) + 3 * 16)
    expect(result.ledger.untrained.evaluation).toBe(2 * (32 + 8) + 3 * 16)
    expect(result.ledger.trained).toBeGreaterThan(0)
    expect(result.ledger.withVariance).toEqual({ sampled: result.ledger.trained, trained: result.ledger.trained })
    expect(result.rollouts).toBe(result.ledger.sampled)
  })

  it('keeps what became of each row: its advantage, or why it was not trained, and logprobs of the trainer', async () => {
    const store = createMemoryStore(directory)
    const { curve, ledger } = await startChanged(store, (episode, index) => (index === 3 ? tooLong(episode) : episode), {})
    const byReason = new Map<string | null, number>()
    for (const { reason, tokens } of store.samples) byReason.set(reason, (byReason.get(reason) ?? 0) + tokens)
    expect(Object.fromEntries(byReason)).toEqual({ null: ledger.trained, ...ledger.untrained })
    for (const { step, metrics } of curve) {
      const trained = store.samples.filter((row) => row.step === step && row.reason === null)
      expect(trained.length).toBe(metrics['trainedTokens'])
      const groups = Map.groupBy(trained, ({ rollout }) => rollout.slice(0, rollout.lastIndexOf('/')))
      for (const rows of groups.values()) {
        const rewards = rows.map(({ rollout }) => store.episode(rollout)!.reward!)
        expect(rows.map(({ advantage }) => advantage)).toEqual(groupAdvantages(rewards, 'group-relative').advantages)
      }
    }
    expect(store.samples.filter(({ reason }) => reason !== null).every(({ advantage }) => advantage === null)).toBe(true)
    for (const { rollout, reason, trainerLogprobs } of store.samples) {
      expect(trainerLogprobs === null).toBe(reason !== null)
      if (trainerLogprobs === null) continue
      const { rolloutLogprobs } = store.episode(rollout)!.trajectories[0]!.turns[0]!
      expect([...trainerLogprobs]).toEqual([expect.closeTo(rolloutLogprobs[0]!, 4)])
    }
  })

  it('learns by a loss of one’s own, whose numbers are metrics of the steps, and resumes on its curve', async () => {
    const options = { loss: gspo({ low: 0.2, high: 0.2 }), config: makeConfig({ promptsPerUpdate: 2 }) }
    const whole = await startProcess(createMemoryStore(join(directory, 'whole')), options)
    expect(whole.after!.reward).toBeGreaterThan(0.8)
    expect(whole.curve[0]!.metrics['loss/ratio']).toBeGreaterThan(0.5)
    const store = createMemoryStore(join(directory, 'stopped'))
    const controller = new AbortController()
    const onEvent = (event: RunEvent) => {
      store.appendEvent(event)
      if (event.type === 'step-end' && event.step === 7) controller.abort()
    }
    await startProcess(store, { ...options, signal: controller.signal, onEvent })
    expect(curveOf(await startProcess(store, options))).toEqual(curveOf(whole))
  })

  it('warns where every derivative of a loss is 0', async () => {
    const store = createMemoryStore(directory)
    const loss: PolicyLoss = (rows) => rows.map(({ logprobs }) => ({ loss: 0, gradient: logprobs.map(() => 0) }))
    await startProcess(store, { loss, config: makeConfig({ steps: 1 }) })
    expect(warningsOf(store)).toEqual([['BATCH_WITHOUT_GRADIENT', 'Step 1 trained nothing: every derivative of its loss is 0.']])
  })

  it('ends with the reason where a loss answers what it must not, and trains nothing', async () => {
    const store = createMemoryStore(directory)
    await expect(startProcess(store, { loss: () => [] })).rejects.toMatchObject({ code: 'LOSS_INVALID' })
    expect(store.steps()).toEqual([])
  })

  it('gives the same curve again for the same seed, and another for another', async () => {
    const first = await startProcess(createMemoryStore(join(directory, 'a')))
    const second = await startProcess(createMemoryStore(join(directory, 'b')))
    const other = await startProcess(createMemoryStore(join(directory, 'c')), { seed: 4 })
    expect(curveOf(second)).toEqual(curveOf(first))
    expect(curveOf(other)).not.toEqual(curveOf(first))
  })

  it('keeps checkpoints every k steps and the best by validation', async () => {
    const result = await startProcess(createMemoryStore(directory))
    const folders = readdirSync(join(directory, 'checkpoints')).sort()
    expect(folders).toEqual([expect.stringMatching(/^best-step-\d+$/), 'step-000000', 'step-000005', 'step-000010', 'step-000012'])
    expect(result.bestCheckpoint).toBe(`checkpoints/${folders[0]}`)
    expect(result.checkpoints).toHaveLength(5)
  })

  it('follows the same curve after it died at any point, and trains each rollout once', async () => {
    const whole = await startProcess(createMemoryStore(join(directory, 'whole')))
    for (const deaths of [[1], [40, 90], [200, 101, 92], [333, 20, 55, 9], [470], [511]]) {
      const path = join(directory, `died-${deaths.join('-')}`)
      const store = createMemoryStore(path)
      for (const rollouts of deaths) {
        const { learner, engine } = createBigramPolicy(vocabulary)
        let left = rollouts
        const beforeRollout = () => {
          if (left-- === 0) throw new Error('killed')
        }
        const runner = createDirectRunner({ engine, store, reward: countUp, beforeRollout })
        await expect(startProcess(store, { learner, engine, runner })).rejects.toThrow('killed')
      }
      const resumed = await startProcess(store)
      expect(curveOf(resumed)).toEqual(curveOf(whole))
      expect(resumed.after).toEqual(whole.after)
      expect(resumed.ledger).toEqual(whole.ledger)
      expect(resumed.bestCheckpoint).toBe(whole.bestCheckpoint)
    }
  })

  it('follows the same curve when it dies between an update, its checkpoint and its commit', async () => {
    const whole = await startProcess(createMemoryStore(join(directory, 'whole')))
    for (const [method, calls] of [
      ['update', 5],
      ['publish', 4],
      ['save', 2],
      ['commitStep', 3],
      ['setState', 6],
    ] as const) {
      const store = createMemoryStore(join(directory, method))
      const { learner, engine } = createBigramPolicy(vocabulary)
      let left = calls
      const dying = <T extends object>(target: T): T =>
        new Proxy(target, {
          get(object, name, receiver) {
            const value = Reflect.get(object, name, receiver) as unknown
            if (name !== method || typeof value !== 'function') return value
            return (...args: unknown[]) => {
              if (left-- === 0) throw new Error('killed')
              return value.apply(object, args) as unknown
            }
          },
        })
      const runner = createDirectRunner({ engine, store, reward: countUp })
      await expect(startProcess(store, { learner: dying(learner), engine, runner, store: dying(store) })).rejects.toThrow('killed')
      const resumed = await startProcess(store)
      expect(curveOf(resumed)).toEqual(curveOf(whole))
      expect(resumed.ledger).toEqual(whole.ledger)
    }
  })

  it('falls back on the checkpoint before a corrupt one', async () => {
    const store = createMemoryStore(directory)
    const stop = new AbortController()
    const onEvent = (event: RunEvent) => event.type === 'step-end' && event.step === 7 && stop.abort()
    const stopped = await startProcess(store, { signal: stop.signal, onEvent })
    expect(stopped).toMatchObject({ status: 'stopped', steps: 7 })
    writeFileSync(join(directory, 'checkpoints', 'step-000005', 'weights.json'), '[1, 2')
    const resumed = await startProcess(store)
    const whole = await startProcess(createMemoryStore(join(directory, 'whole')))
    expect(curveOf(resumed)).toEqual(curveOf(whole))
    expect(store.events.filter(({ type }) => type === 'warning-raised')).toMatchObject([{ code: 'CHECKPOINT_CORRUPT' }])
  })

  it('stops cleanly on the signal and resumes to the end', async () => {
    const store = createMemoryStore(directory)
    const stop = new AbortController()
    const onEvent = (event: RunEvent) => event.type === 'evaluation-start' && event.name === 'validation-8' && stop.abort()
    const stopped = await startProcess(store, { signal: stop.signal, onEvent })
    expect(stopped).toMatchObject({ status: 'stopped', steps: 8, after: null, ledger: { unexplained: 0 } })
    const resumed = await startProcess(store)
    expect(resumed).toMatchObject({ status: 'finished', steps: 12, resumedFromStep: 8, ledger: { unexplained: 0 } })
  })

  it('refuses a step whose rollouts all failed, and tries it with new ones at the next start', async () => {
    const store = createMemoryStore(directory)
    const failures: unknown[] = []
    const onFailure = (result: unknown) => failures.push(result)
    await expect(startProcess(store, { reward: () => null, onFailure, evaluation: {} })).rejects.toMatchObject({
      code: 'TRAINER_EMPTY_BATCH',
      details: { step: 1 },
    })
    expect(failures).toMatchObject([{ status: 'failed', steps: 0, ledger: { unexplained: 0, untrained: { 'failed-episode': 32 } } }])
    expect(store.steps()).toEqual([])
    const resumed = await startProcess(store)
    expect(resumed.status).toBe('finished')
    expect(resumed.ledger).toMatchObject({ unexplained: 0, untrained: { 'failed-episode': 32 } })
  })

  it('trains nothing of rollouts from which the reward abstained, and leaves them out of means', async () => {
    const store = createMemoryStore(directory)
    const rewards: number[] = []
    const abstains = (episode: Episode, index: number): Episode => {
      if (index % 4 === 0) return { ...episode, reward: null }
      rewards.push(episode.reward ?? 0)
      return episode
    }
    const { ledger, curve } = await startChanged(store, abstains, { steps: 1 })
    const [{ metrics }] = curve as [(typeof curve)[number]]
    expect(metrics).toMatchObject({ unscoredEpisodes: 8, failedEpisodes: 0 })
    expect(ledger).toMatchObject({ unexplained: 0, untrained: { 'not-scored': 8 } })
    expect(rewards).toHaveLength(24)
    expect(metrics['rewardMean']).toBeCloseTo(rewards.reduce((sum, reward) => sum + reward, 0) / 24, 9)
  })

  it('trains each role by its own values, leaves one whose values are equal out of every group, and has metrics of both', async () => {
    const store = createMemoryStore(directory)
    const asRole = (episode: Episode): Episode => {
      const agent = episode.sample % 2 === 0 ? 'lead' : 'reader'
      const [trajectory] = episode.trajectories
      const turns = trajectory!.turns.map((turn) => ({ ...turn, agent, trajectory: agent }))
      return { ...episode, trajectories: [{ ...trajectory!, id: agent, agent, turns }], agentRewards: { reader: 0.25 } }
    }
    const { ledger, curve } = await startChanged(store, asRole, { steps: 2, ownReward: 1 })
    for (const { metrics } of curve) {
      expect(metrics).toMatchObject({
        'role/lead/invocations': 16,
        'role/lead/sampledTokens': 16,
        'role/reader/turns': 16,
        'role/reader/reward': 0.25,
        'role/reader/malformedTurns': 0,
        'role/reader/groupsWithVariance': 0,
      })
      expect(metrics['role/lead/groupsWithVariance']).toBe(metrics['groupsWithVariance'])
    }
    expect(ledger).toMatchObject({ unexplained: 0, sampled: 64 })
    expect(ledger.trained).toBeGreaterThan(0)
    const readers = store.samples.filter(({ agent }) => agent === 'reader')
    expect(new Set(readers.map(({ reason }) => reason))).toEqual(new Set(['zero-variance-group']))
    expect(readers).toHaveLength(32)
  })

  it('ends with an evaluation of which every rollout fails, and says why they did', async () => {
    const store = createMemoryStore(directory)
    await expect(startProcess(store, { reward: () => null })).rejects.toMatchObject({
      code: 'EVALUATION_FAILED',
      message: expect.stringMatching(
        /^All 32 rollouts of the evaluation "before" failed:\n {2}- 32 of AGENT_FAILED, first evaluation\/before\/0\/0: /,
      ),
    })
    expect(store.steps()).toEqual([])
  })

  it('ends with the error of prompts that fill the context by themselves where no other rollout is left', async () => {
    const refused = startChanged(createMemoryStore(directory), tooLong, { steps: 2 })
    await expect(refused).rejects.toMatchObject({
      code: 'POLICY_CONTEXT_OVERFLOW',
      message: expect.stringMatching(
        /^All 32 rollouts of step 1 failed; nothing was trained:\n.*32 of POLICY_CONTEXT_OVERFLOW.*The conversation has 600 tokens\./,
      ),
    })
  })

  it('goes on with the others where only some prompts fill the context, and says so once', async () => {
    const store = createMemoryStore(directory)
    const result = await startChanged(store, (episode, index) => (index < 8 ? tooLong(episode) : episode), { steps: 3 })
    expect(result.steps).toBe(3)
    expect(warningsOf(store)).toEqual([
      ['POLICY_CONTEXT_OVERFLOW', expect.stringMatching(/^8 of 32 rollouts of step 1 .*task "task-\d".*The conversation has 600 tokens\./)],
    ])
  })

  it('gives groups that shrink to one episode no advantage, and says so', async () => {
    const store = createMemoryStore(directory)
    const lone = (episode: Episode, index: number) => (index > 0 && index < 8 ? { ...episode, reward: null } : episode)
    const result = await startChanged(store, lone, { steps: 1 })
    expect(result.curve[0]?.metrics).toMatchObject({ groupsOfOne: 1 })
    expect(result.ledger.untrained['group-of-one']).toBe(1)
    expect(warningsOf(store)).toEqual([['GROUP_OF_ONE', expect.stringMatching(/^1 of 4 groups of step 1 have a single scored episode/)]])
  })

  it('skips a step without a gradient with a warning', async () => {
    const store = createMemoryStore(directory)
    const result = await startProcess(store, { reward: () => 1 as never, config: makeConfig({ steps: 2 }) })
    expect(result.ledger).toMatchObject({ trained: 0, unexplained: 0, untrained: { 'zero-variance-group': 64 } })
    expect(store.events.filter(({ type }) => type === 'warning-raised')).toMatchObject([
      { code: 'BATCH_WITHOUT_GRADIENT' },
      { code: 'BATCH_WITHOUT_GRADIENT' },
    ])
  })

  it('leaves failed episodes out of the groups and counts their tokens', async () => {
    let calls = 0
    const reward = ((request: RolloutRequest, completion: readonly number[]) =>
      ++calls % 5 === 0 ? null : countUp(request, completion)) as never
    const result = await startProcess(createMemoryStore(directory), { reward, evaluation: {}, config: makeConfig({ steps: 3 }) })
    expect(result.episodesByStopReason).toEqual({ completed: 77, failed: 19 })
    expect(result.ledger).toMatchObject({ sampled: 96, unexplained: 0, untrained: { 'failed-episode': 19 } })
  })

  it('ends a run before an outage spoils its step, and the resumed run has the curve of one without', async () => {
    const store = createMemoryStore(directory)
    let calls = 0
    const reward = ((request: RolloutRequest, completion: readonly number[]) =>
      request.split === 'train' && request.step === 2 && ++calls > 12 ? 'lost' : countUp(request, completion)) as never
    await expect(startProcess(store, { reward })).rejects.toMatchObject({
      code: 'TOOL_SERVER_DIED',
      message: expect.stringMatching(/^20 of 32 rollouts of step 2 have no outcome.*when the run is resumed.*It is gone\./),
    })
    expect(store.steps().map(({ step }) => step)).toEqual([1])
    const resumed = await startProcess(store)
    expect(curveOf(resumed)).toEqual(curveOf(await startProcess(createMemoryStore(`${directory}/2`))))
    expect(resumed.ledger.unexplained).toBe(0)
    expect([...store.episodes()].filter(({ attempt }) => attempt === 1)).toHaveLength(20)
  })

  it('leaves what the infrastructure failed out of every mean, and says of how many it is', async () => {
    const lose = ((request: RolloutRequest, completion: readonly number[]) =>
      request.sample % 4 === 1 || request.task.id === 'task-2' ? 'lost' : countUp(request, completion) || 0.5) as never
    const store = createMemoryStore(directory)
    const { before, curve } = await startProcess(store, { reward: lose, config: makeConfig({ steps: 1, evaluateEvery: null }) })
    expect(before).toMatchObject({ tasks: 8, rollouts: 32, failed: 11, counted: { tasks: 7, rollouts: 21 } })
    expect(before!.reward).toBeGreaterThanOrEqual(0.5)
    expect(curve[0]!.reward).toBeGreaterThanOrEqual(0.5)
    const end = store.events.find((event) => event.type === 'evaluation-end' && event.name === 'before')
    expect(end).toMatchObject({ metrics: { tasks: 8, rollouts: 32, countedTasks: 7, countedRollouts: 21 } })
  })

  it('ends with the first error where the infrastructure failed a whole evaluation', async () => {
    const store = createMemoryStore(directory)
    const none = startProcess(store, { reward: (() => 'lost') as never })
    await expect(none).rejects.toMatchObject({
      code: 'TOOL_SERVER_DIED',
      message: expect.stringMatching(/^None of the 32 rollouts.*"before"/),
    })
    expect((await startProcess(store)).before).toMatchObject({ failed: 0, rollouts: 32 })
  })

  it('finds weights that sample and are not those that train', async () => {
    const { engine } = createBigramPolicy(vocabulary)
    const { learner } = createBigramPolicy(vocabulary)
    const store = createMemoryStore(directory)
    const runner = createDirectRunner({ engine, store, reward: countUp })
    await expect(startProcess(store, { learner, engine, runner })).rejects.toMatchObject({ code: 'POLICY_LOGPROB_MISMATCH' })
    expect(store.steps().length).toBeGreaterThan(0)
    expect(store.steps().length).toBeLessThan(12)
  })

  it('takes a single sample of each prompt where the advantage needs no group', async () => {
    const config = makeConfig({ samplesPerPrompt: 1, advantage: 'none', steps: 1 })
    expect(await startProcess(createMemoryStore(directory), { config, evaluation: {} })).toMatchObject({ status: 'finished' })
  })

  it('draws each kind as often as stratify says', async () => {
    const store = createMemoryStore(directory)
    const config = makeConfig({ steps: 4, stratify: { key: 'kind', counts: { even: 3, odd: 1 } } })
    await startProcess(store, { config, evaluation: {} })
    const kinds = Map.groupBy(store.episodes(), ({ taskId }) => (Number(taskId.slice(5)) % 2 === 1 ? 'even' : 'odd'))
    expect([kinds.get('even')!.length, kinds.get('odd')!.length]).toEqual([96, 32])
  })

  it.each([
    [{ config: { ...makeConfig(), sampling: { temperature: 1, topP: 0.9, topK: 0, maxTokens: 1 } } }, /topP/],
    [{ config: { ...makeConfig(), sampling: { temperature: 0, topP: 1, topK: 0, maxTokens: 1 } } }, /temperature/],
    [{ config: makeConfig({ klCoefficient: 0.1 }) }, /reference/],
    [{ config: makeConfig({ samplesPerPrompt: 1 }) }, /samplesPerPrompt is 1.*"group-relative".*at least 2 samples.*"none"/],
    [{ config: makeConfig({ samplesPerPrompt: 1, advantage: 'leave-one-out' }) }, /samplesPerPrompt is 1/],
    [{ config: makeConfig({ stratify: { key: 'kind', counts: { even: 3 } } }) }, /counts 3 prompts/],
    [{ config: makeConfig({ stratify: { key: 'kind', counts: { even: 3, strange: 1 } } }) }, /"strange"/],
    [{ tasks: [] }, /no tasks/],
  ])('refuses settings that cannot be trained (%#)', async (options, message) => {
    await expect(startProcess(createMemoryStore(directory), options)).rejects.toThrow(message)
  })
})
