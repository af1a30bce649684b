import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type RolloutRequest, type RunEvent, type TrainingTask, taskHash } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { createDirectRunner, type DirectRunnerOptions } from '../testing/direct-runner.ts'
import { createMemoryStore } from '../testing/memory-store.ts'
import type { SelfDrivenOptions } from './self-driven-options.ts'
import { trainSelfDriven } from './train-self-driven.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-waves-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const tasks = Array.from({ length: 8 }, (_, i): TrainingTask => {
  const data = { token: i + 1 }
  return { version: 1, id: `task-${i + 1}`, hash: taskHash({ input: 'x', data }), input: 'x', data, dataSource: 'count', extraInfo: {} }
})
/** The number after that of the task earns 1; of the last three tasks everything does. */
const countUp = ({ task }: RolloutRequest, [first]: readonly number[]) => {
  const token = task.data['token'] as number
  return token > 5 || first === token + 1 ? 1 : 0
}
/** The sample of a request within its group. */
const placeOf = ({ key }: RolloutRequest) => Number(key.split('/').at(-1))

type Store = ReturnType<typeof createMemoryStore>
type Reward = DirectRunnerOptions['reward']

interface ProcessChanges {
  readonly training?: object
  readonly reward?: Reward
  readonly beforeRollout?: () => void
  readonly options?: Partial<SelfDrivenOptions>
}

function startProcess(store: Store, { training = {}, reward = countUp, beforeRollout, options }: ProcessChanges = {}) {
  const { learner, engine } = createBigramPolicy(9)
  const { config } = parseLocalConfig({
    training: {
      ...{ steps: 8, promptsPerStep: 4, samplesPerPrompt: 8, firstSamples: 4, learningRate: 8, warmupSteps: 2, checkpointEvery: 3 },
      ...training,
    },
    sampling: { maxTokens: 1 },
  })
  return trainSelfDriven({
    learner,
    engine,
    runner: createDirectRunner({ engine, store, reward, beforeRollout }),
    store,
    tasks,
    config,
    seed: 3,
    signal: new AbortController().signal,
    onEvent: store.appendEvent,
    ...options,
  })
}

/** The death of a process once so many rollouts have begun. */
function dieBefore(rollouts: number): () => void {
  let left = rollouts
  return () => {
    if (left-- === 0) throw new Error('killed')
  }
}

type GroupEnd = Extract<RunEvent, { type: 'group-end' }>
const endsOf = (store: Store) => store.events.filter((event): event is GroupEnd => event.type === 'group-end')
const endedOf = (store: Store) => new Set(endsOf(store).map(({ group }) => group))

describe('firstSamples', () => {
  it('starts the rest of a group unless its first samples are all solved, and says what was not started', async () => {
    const store = createMemoryStore(directory)
    const { ledger, curve, rollouts } = await startProcess(store)
    const ends = endsOf(store)
    expect(ends).toHaveLength(32)
    for (const { why, rewards } of ends) {
      expect(rewards).toHaveLength(why === 'solved' ? 4 : 8)
      expect(rewards.slice(0, 4).every((reward) => reward === 1)).toBe(why === 'solved')
    }
    const solved = ends.filter(({ why }) => why === 'solved').length
    expect(solved).toBeGreaterThan(4)
    expect(solved).toBeLessThan(28)
    const total = (name: string) => curve.reduce((sum, { metrics }) => sum + metrics[name]!, 0)
    expect([total('groupsSolved'), total('notStarted')]).toEqual([solved, 4 * solved])
    expect([rollouts, [...store.episodes()].length]).toEqual([256 - 4 * solved, 256 - 4 * solved])
    expect(ledger.unexplained).toBe(0)
  })

  it('is off by default: a group ends with all its samples, and no metric speaks of it', async () => {
    const store = createMemoryStore(directory)
    const { curve } = await startProcess(store, { training: { firstSamples: null, steps: 2 }, reward: () => 1 })
    expect(endsOf(store).map(({ why, rewards }) => [why, rewards.length])).toEqual(Array.from({ length: 8 }, () => ['full', 8]))
    expect(curve[0]!.metrics).not.toHaveProperty('notStarted')
  })

  it('ends every group early where all tasks are solved', async () => {
    const store = createMemoryStore(directory)
    const { curve, rollouts, ledger } = await startProcess(store, { training: { steps: 2 }, reward: () => 1 })
    expect(rollouts).toBe(32)
    expect(curve.map(({ metrics }) => [metrics['groupsSolved'], metrics['notStarted']])).toEqual([
      [4, 16],
      [4, 16],
    ])
    expect(ledger).toMatchObject({ unexplained: 0, trained: 0, untrained: { 'zero-variance-group': 32 } })
  })

  it.each<[string, Reward]>([
    ['failed', (request) => (placeOf(request) === 2 ? null : 1)],
    ['was lost with its environment', (request) => (placeOf(request) === 2 ? 'lost' : 1)],
  ])('takes no first sample for solved that %s', async (_, reward) => {
    const store = createMemoryStore(directory)
    await startProcess(store, { training: { steps: 1 }, reward })
    expect(endsOf(store).map(({ why, rewards }) => [why, rewards[2]])).toEqual(Array.from({ length: 4 }, () => ['full', null]))
  })

  it('counts a sample as solved from `solvedReward` up', async () => {
    const store = createMemoryStore(directory)
    const reward: Reward = ({ task }) => (task.data['token'] as number) / 8
    await startProcess(store, { training: { steps: 2, solvedReward: 0.5 }, reward })
    const ends = endsOf(store)
    expect(ends.filter(({ why }) => why === 'solved').map(({ rewards }) => rewards[0]! >= 0.5)).toEqual([true, true, true, true, true])
    expect(ends.filter(({ why }) => why === 'full').map(({ rewards }) => rewards[0]! < 0.5)).toEqual([true, true, true])
  })

  it('holds no group up for another, and starts the first samples of all groups before the rest of any', async () => {
    const store = createMemoryStore(directory)
    const { engine, learner } = createBigramPolicy(9)
    const direct = createDirectRunner({ engine, store, reward: () => 0 })
    const started: string[] = []
    const slow = Promise.withResolvers<void>()
    const runner: typeof direct = {
      ...direct,
      async run(request, signal) {
        started.push(request.key)
        // The first group ends its first samples only once all others have ended.
        if (request.key === 'train/1/0/3') await slow.promise
        return await direct.run(request, signal)
      },
    }
    const onEvent = (event: RunEvent) => {
      store.appendEvent(event)
      if (endsOf(store).length === 3) slow.resolve()
    }
    await startProcess(store, { training: { steps: 1 }, options: { engine, learner, runner, onEvent } })
    expect(started.slice(0, 16).every((key) => Number(key.split('/').at(-1)) < 4)).toBe(true)
    expect(endsOf(store).at(-1)!.group).toBe('train/1/0')
    expect(started).toHaveLength(32)
  })

  it('makes the same bits whatever order rollouts end in, and after it died at any point', async () => {
    const whole = createMemoryStore(join(directory, 'whole'))
    const expected = await startProcess(whole)
    const outcomeOf = (store: Store) => store.steps().map(({ rollouts, metrics }) => [rollouts, metrics['loss'], metrics['notStarted']])
    for (const deaths of [[3], [13, 1], [17, 9, 30], [70, 40], [118]]) {
      const store = createMemoryStore(join(directory, `died-${deaths.join('-')}`))
      for (const rollouts of deaths) {
        await expect(startProcess(store, { beforeRollout: dieBefore(rollouts) })).rejects.toThrow('killed')
      }
      const { ledger } = await startProcess(store)
      expect(outcomeOf(store)).toEqual(outcomeOf(whole))
      expect(ledger).toEqual(expected.ledger)
      expect(endedOf(store)).toEqual(endedOf(whole))
      expect(endsOf(store)).toHaveLength(endsOf(whole).length)
    }
    const backwards = createMemoryStore(join(directory, 'backwards'))
    const { engine, learner } = createBigramPolicy(9)
    const direct = createDirectRunner({ engine, store: backwards, reward: countUp })
    const runner: typeof direct = {
      ...direct,
      async run(request, signal) {
        for (let turn = 0; turn < 40 - (request.sample % 8) * 5; turn++) await setImmediate()
        return await direct.run(request, signal)
      },
    }
    await startProcess(backwards, { options: { engine, learner, runner } })
    expect(outcomeOf(backwards)).toEqual(outcomeOf(whole))
  })

  it('goes on with groups that it had completed, though what was lost of their first samples is solved when it runs again', async () => {
    const store = createMemoryStore(directory)
    const outage: Reward = (request) => (placeOf(request) === 2 ? 'lost' : 1)
    const training = { steps: 1 }
    await expect(startProcess(store, { training, reward: outage, beforeRollout: dieBefore(20) })).rejects.toThrow('killed')
    const { ledger, rollouts } = await startProcess(store, { training, reward: () => 1 })
    expect([rollouts, ledger.unexplained]).toEqual([32, 0])
    expect(ledger.untrained['zero-variance-group']).toBe(32)
  })

  it('stops where a group would start its rest', async () => {
    const store = createMemoryStore(directory)
    const stop = new AbortController()
    const setState: Store['setState'] = async (key, value) => {
      if (key === 'groups-of-step') stop.abort()
      await store.setState(key, value)
    }
    const options = { store: { ...store, setState }, signal: stop.signal }
    const { status, ledger } = await startProcess(store, { reward: () => 0, options })
    expect([status, ledger.unexplained]).toEqual(['stopped', 0])
    expect([...store.episodes()].length).toBeLessThanOrEqual(16)
    expect((await startProcess(store, { reward: () => 0 })).status).toBe('finished')
  })

  it.each([
    [{ firstSamples: 8 }, /firstSamples is 8 and training\.samplesPerPrompt 8.*fewer first samples/],
    [{ firstSamples: 4, advantage: 'none' }, /firstSamples is 4 and training\.advantage "none".*samples teach whatever/],
  ])('refuses what it can do nothing with (%#)', async (training, message) => {
    const refused = startProcess(createMemoryStore(directory), { training })
    await expect(refused).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
  })
})

/** Groups of a task teach where its number is odd, are solved where it is 2 or 6, and fail where it is 4 or 8. */
const oddTeach: Reward = ({ task, sample }) => {
  const token = task.data['token'] as number
  return token % 2 === 1 ? sample % 2 : token % 4 === 2 ? 1 : 0
}
const fill = { firstSamples: null, samplesPerPrompt: 4, teachingPrompts: 4, maxPrompts: 12 }
/** Groups of each step, by their draw, in the order of draws. */
const drawsOf = (store: Store) =>
  store.steps().map(({ step }) => [
    ...new Set(
      store.samples
        .filter((row) => row.step === step)
        .map(({ rollout }) => rollout.split('/').slice(1, 3).map(Number))
        .map(([batch, position]) => (batch! - 1) * 4 + position!),
    ),
  ])
const warningsOf = (store: Store, code: string) => store.events.filter((event) => event.type === 'warning-raised' && event.code === code)

describe('teachingPrompts', () => {
  it('draws in place of groups that teach nothing until enough teach, each wave once the one before has ended', async () => {
    const store = createMemoryStore(directory)
    const { curve, ledger } = await startProcess(store, { training: { ...fill, steps: 6 }, reward: oddTeach })
    expect(curve.map(({ metrics }) => metrics['groupsWithVariance'])).toEqual([4, 4, 4, 4, 4, 4])
    expect(curve.map(({ metrics }) => metrics['groups'])).toEqual(curve.map(({ metrics }) => metrics['groupsDrawn']))
    expect(curve.every(({ metrics }) => metrics['groupsDrawn']! > 4)).toBe(true)
    const draws = drawsOf(store).flat()
    expect(draws).toEqual(draws.map((_, index) => index))
    expect(ledger.unexplained).toBe(0)
    expect(warningsOf(store, 'STEP_NOT_FILLED')).toEqual([])
  })

  it.each<[string, Reward, number]>([
    ['solved', () => 1, 0],
    ['unsolved', () => 0, 0],
    ['solved but for one', ({ task, sample }) => (task.data['token'] === 1 ? sample % 2 : 1), 2],
  ])('ends at `maxPrompts` where tasks are all %s, trains what teaches, and warns once', async (_, reward, least) => {
    const store = createMemoryStore(directory)
    const { curve, ledger, status } = await startProcess(store, { training: { ...fill, steps: 3 }, reward })
    expect(status).toBe('finished')
    expect(curve.map(({ metrics }) => metrics['groupsDrawn'])).toEqual([12, 12, 12])
    const teaching = curve.map(({ metrics }) => metrics['groupsWithVariance']!)
    expect(Math.max(...teaching)).toBe(least)
    expect(curve.map(({ metrics }) => metrics['trainedTokens'])).toEqual(teaching.map((groups) => 4 * groups))
    expect(warningsOf(store, 'STEP_NOT_FILLED')).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/^Of the 12 groups of step 1, .* \d teach and not the 4 /) }),
    ])
    expect(ledger.unexplained).toBe(0)
  })

  it('ends at twice `promptsPerStep` by default, and draws tasks again where there are fewer', async () => {
    const store = createMemoryStore(directory)
    const options = { tasks: tasks.slice(0, 3) }
    const { curve, ledger } = await startProcess(store, { training: { ...fill, maxPrompts: null, steps: 2 }, reward: () => 0, options })
    expect(curve.map(({ metrics }) => metrics['groupsDrawn'])).toEqual([8, 8])
    const samples = Map.groupBy(store.episodes(), ({ taskId }) => taskId)
    for (const episodes of samples.values()) expect(new Set(episodes.map(({ sample }) => sample)).size).toBe(episodes.length)
    expect(samples.size).toBe(3)
    expect(ledger.unexplained).toBe(0)
  })

  it('alternates the kinds of its draws', async () => {
    const store = createMemoryStore(directory)
    const kindOf = (id: string) => (Number(id.slice(5)) % 2 === 0 ? 'even' : 'odd')
    const options = { tasks: tasks.map((task) => ({ ...task, extraInfo: { kind: kindOf(task.id) } })) }
    const training = { ...fill, steps: 1, stratify: { key: 'kind', counts: { even: 2, odd: 2 } } }
    await startProcess(store, { training, reward: () => 0, options })
    const groups = Map.groupBy(store.episodes(), ({ group }) => group)
    expect([...groups.values()].map(([first]) => kindOf(first!.taskId))).toEqual(Array.from({ length: 6 }, () => ['even', 'odd']).flat())
  })

  it('takes no group for teaching whose only differences are rollouts that failed', async () => {
    const store = createMemoryStore(directory)
    const { curve } = await startProcess(store, {
      training: { ...fill, steps: 1 },
      reward: (request) => (placeOf(request) === 0 ? null : 0),
    })
    expect(curve[0]!.metrics).toMatchObject({ groupsDrawn: 12, groupsWithVariance: 0, failedEpisodes: 12 })
  })

  it('stops where every rollout fails, and draws the groups anew in the next process', async () => {
    const store = createMemoryStore(directory)
    const failing = startProcess(store, { training: { ...fill, steps: 1 }, reward: () => null })
    await expect(failing).rejects.toMatchObject({ code: 'TRAINER_EMPTY_BATCH' })
    const { ledger, curve } = await startProcess(store, { training: { ...fill, steps: 1 }, reward: oddTeach })
    expect(curve[0]!.metrics['groupsDrawn']).toBe(12)
    expect([...store.episodes()].filter(({ group }) => group.startsWith('train/1.1/'))).toHaveLength(16)
    expect(ledger.unexplained).toBe(0)
  })

  it('makes the same bits after it died at any point, between waves too', async () => {
    const training = { ...fill, samplesPerPrompt: 8, firstSamples: 4 }
    const whole = createMemoryStore(join(directory, 'whole'))
    const expected = await startProcess(whole, { training })
    const outcomeOf = (store: Store) => store.steps().map(({ rollouts, metrics }) => [rollouts, metrics['loss'], metrics['groupsDrawn']])
    expect(new Set(whole.steps().map(({ metrics }) => metrics['groupsDrawn'])).size).toBeGreaterThan(1)
    for (const rollout of [1, 16, 17, 28, 40, 63, 90, 130, 131, 200]) {
      const store = createMemoryStore(join(directory, `died-${rollout}`))
      await expect(startProcess(store, { training, beforeRollout: dieBefore(rollout) })).rejects.toThrow('killed')
      const { ledger } = await startProcess(store, { training })
      expect(outcomeOf(store)).toEqual(outcomeOf(whole))
      expect(ledger).toEqual(expected.ledger)
    }
  })

  it('goes on with a wave that was drawn, though what was lost before it teaches when it runs again', async () => {
    const store = createMemoryStore(directory)
    const training = { ...fill, steps: 1 }
    const outage: Reward = (request) => (placeOf(request) > 1 ? 'lost' : 1)
    await expect(startProcess(store, { training, reward: outage, beforeRollout: dieBefore(19) })).rejects.toThrow('killed')
    const { curve, ledger, rollouts } = await startProcess(store, { training, reward: ({ sample }) => sample % 2 })
    expect(curve[0]!.metrics).toMatchObject({ groups: 8, groupsDrawn: 8 })
    expect([rollouts, ledger.unexplained]).toEqual([32, 0])
  })

  it.each([
    { hardStaleness: false, second: [3, 4, 5] },
    { hardStaleness: true, second: [3, 4, 5, 6, 7] },
  ])('leaves groups that teach to the next step where they may be ahead (hard: $hardStaleness)', async ({ hardStaleness, second }) => {
    const store = createMemoryStore(directory)
    const training = { ...fill, teachingPrompts: 3, maxStaleness: 1, hardStaleness, steps: 6 }
    const { curve, ledger } = await startProcess(store, { training, reward: ({ sample }) => sample % 2 })
    const draws = drawsOf(store)
    expect(draws.slice(0, 2)).toEqual([[0, 1, 2], second])
    expect(draws.flat()).toEqual(draws.flat().map((_, index) => index))
    if (hardStaleness) expect(Math.max(...curve.map(({ metrics }) => metrics['mostStaleness']!))).toBe(1)
    expect(ledger).toMatchObject({ unexplained: 0, untrained: {} })
  })

  it('trains all that is open in the last step, of which waves go on', async () => {
    const store = createMemoryStore(directory)
    const training = { ...fill, maxStaleness: 2, steps: 3 }
    const { curve, ledger } = await startProcess(store, { training, reward: oddTeach })
    const draws = drawsOf(store).flat()
    expect(draws.toSorted((a, b) => a - b)).toEqual(draws.map((_, index) => index))
    expect([...store.episodes()]).toHaveLength(4 * draws.length)
    expect(curve.at(-1)!.metrics['groupsWithVariance']).toBeGreaterThanOrEqual(4)
    expect(ledger).toMatchObject({ unexplained: 0 })
    expect(ledger.untrained).not.toHaveProperty('in-flight')
  })

  it.each([
    [{ ...fill, advantage: 'none' }, /teachingPrompts is 4 and training\.advantage "none"/],
    [{ ...fill, maxPrompts: 3 }, /draws 3 prompts at most \(training\.maxPrompts\), fewer than training\.promptsPerStep, which is 4/],
    [{ ...fill, teachingPrompts: 13 }, /draws 12 prompts at most .* training\.teachingPrompts, which is 13/],
  ])('refuses what no step could do (%#)', async (training, message) => {
    const refused = startProcess(createMemoryStore(directory), { training })
    await expect(refused).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
  })
})
