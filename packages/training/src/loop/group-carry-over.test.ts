import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type RolloutRequest, type RolloutRunner, type StepRecord, type TrainingTask, taskHash } from '@aworld-train/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseLocalConfig } from '../config/parse-local-config.ts'
import { createBigramPolicy } from '../testing/bigram-policy.ts'
import { createDirectRunner } from '../testing/direct-runner.ts'
import { createMemoryStore } from '../testing/memory-store.ts'
import type { SelfDrivenOptions } from './self-driven-options.ts'
import { trainSelfDriven } from './train-self-driven.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-groups-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const tasks = Array.from({ length: 8 }, (_, i): TrainingTask => {
  const data = { token: i + 1 }
  return { version: 1, id: `task-${i + 1}`, hash: taskHash({ input: 'x', data }), input: 'x', data, dataSource: 'count', extraInfo: {} }
})
const countUp = ({ task }: RolloutRequest, [first]: readonly number[]) => (first === ((task.data['token'] as number) % 8) + 1 ? 1 : 0)

const steps = 10
const makeConfig = (training: object) =>
  parseLocalConfig({
    training: {
      steps,
      promptsPerStep: 4,
      samplesPerPrompt: 8,
      learningRate: 8,
      warmupSteps: 2,
      checkpointEvery: 4,
      maxStaleness: 1,
      ...training,
    },
    sampling: { maxTokens: 1 },
    concurrency: 64,
  }).config

type Store = ReturnType<typeof createMemoryStore>

/** Runs rollouts concurrently. Every third group takes as long as several steps, and its last sample takes longest. */
function slowRunner(options: Parameters<typeof createDirectRunner>[0]): RolloutRunner {
  const direct = createDirectRunner(options)
  return {
    ...direct,
    async run(request, signal) {
      const turns = Math.floor(request.sample / 8) % 3 === 1 && request.sample % 8 === 7 ? 150 : 5
      for (let turn = 0; turn < turns; turn++) {
        await setImmediate()
        signal.throwIfAborted()
      }
      return await direct.run(request, signal)
    },
  }
}

function startProcess(store: Store, training: object = {}, options: Partial<SelfDrivenOptions> & { beforeRollout?: () => void } = {}) {
  const { learner, engine } = createBigramPolicy(9)
  const { beforeRollout, ...rest } = options
  return trainSelfDriven({
    learner,
    engine,
    runner: slowRunner({ engine: (rest.engine as typeof engine) ?? engine, store, reward: countUp, beforeRollout }),
    store,
    tasks,
    evaluation: { test: tasks },
    config: makeConfig(training),
    seed: 3,
    signal: new AbortController().signal,
    onEvent: store.appendEvent,
    ...rest,
  })
}

/** The groups whose rows a step has, trained or not, by their draw. */
const drawsOf = (store: Store, { step }: StepRecord) =>
  [...new Set(store.samples.filter((row) => row.step === step).map(({ rollout }) => rollout.split('/').slice(1, 3)))]
    .map(([batch, position]) => (Number(batch) - 1) * 4 + Number(position))
    .filter((draw, index, all) => all.indexOf(draw) === index)
    .sort((a, b) => a - b)

const allDraws = Array.from({ length: steps * 4 }, (_, draw) => draw)

describe('groups ahead of their step', () => {
  it('carries slow groups over, trains each once, and accounts for every token', async () => {
    const store = createMemoryStore(directory)
    const { ledger, curve, after, status } = await startProcess(store)
    expect(status).toBe('finished')
    expect(ledger.unexplained).toBe(0)
    expect(after!.reward).toBeGreaterThan(0.6)
    const draws = store.steps().map((step) => drawsOf(store, step))
    expect(draws.flat().sort((a, b) => a - b)).toEqual(allDraws)
    expect(draws[0]).not.toContain(1)
    for (const [index, { metrics }] of curve.entries()) {
      const staleness = draws[index]!.map((draw) => index + 1 - Math.max(1, Math.floor(draw / 4)))
      expect(metrics['mostStaleness']).toBe(Math.max(...staleness))
      expect(metrics['slotsUsed']).toBeGreaterThan(0)
    }
    expect(Math.max(...curve.map(({ metrics }) => metrics['mostStaleness']!))).toBeGreaterThan(1)
  })

  it('samples steps in their order without staleness', async () => {
    const store = createMemoryStore(directory)
    const { curve } = await startProcess(store, { maxStaleness: 0 })
    expect(store.steps().map((step) => drawsOf(store, step))).toEqual(
      Array.from({ length: steps }, (_, step) => [0, 1, 2, 3].map((i) => step * 4 + i)),
    )
    expect(curve.every(({ metrics }) => metrics['mostStaleness'] === 0 && metrics['truncatedRatios'] === undefined)).toBe(true)
  })

  it('waits for slow groups where staleness is hard', async () => {
    const { curve, ledger } = await startProcess(createMemoryStore(directory), { hardStaleness: true })
    expect(curve.map(({ metrics }) => metrics['mostStaleness'])).toEqual([0, ...Array.from({ length: steps - 1 }, () => 1)])
    expect(ledger.unexplained).toBe(0)
  })

  it('tells the store which groups go on to the next step', async () => {
    const store = createMemoryStore(directory)
    await startProcess(store)
    for (const [index, step] of store.steps().entries()) {
      const trained = store
        .steps()
        .slice(0, index + 1)
        .flatMap((each) => drawsOf(store, each))
      const carried = step
        .carriedGroups!.map((group) => group.split('/'))
        .map(([, batch, position]) => (Number(batch) - 1) * 4 + Number(position))
      expect([...trained, ...carried].sort((a, b) => a - b)).toEqual(allDraws.slice(0, Math.min(40, 8 + index * 4)))
    }
  })

  it('makes the same steps after it died at any point, and trains nothing twice', async () => {
    for (const deaths of [[3], [50, 40], [101, 30, 77], [200], [331]]) {
      const store = createMemoryStore(join(directory, `died-${deaths.join('-')}`))
      let before: readonly StepRecord[] = []
      for (const rollouts of deaths) {
        let left = rollouts
        const beforeRollout = () => {
          if (left-- === 0) throw new Error('killed')
        }
        await expect(startProcess(store, {}, { beforeRollout })).rejects.toThrow('killed')
        expect(store.steps().slice(0, before.length)).toEqual(before)
        before = [...store.steps()]
      }
      const { ledger, status } = await startProcess(store)
      expect(status).toBe('finished')
      expect(store.steps().slice(0, before.length)).toEqual(before)
      expect(
        store
          .steps()
          .flatMap((step) => drawsOf(store, step))
          .sort((a, b) => a - b),
      ).toEqual(allDraws)
      expect(ledger.unexplained).toBe(0)
      expect(ledger.sampled).toBe([...store.episodes({})].length)
    }
  })

  it.each([
    ['update', 5],
    ['publish', 4],
    ['save', 2],
    ['setState', 9],
    ['commitStep', 3],
  ] as const)('makes a step again as it was when it dies in %s', async (method, calls) => {
    const store = createMemoryStore(directory)
    const policy = createBigramPolicy(9)
    let left: number = calls
    const updates: unknown[] = []
    const dying = <T extends object>(target: T): T =>
      new Proxy(target, {
        get(object, name, receiver) {
          const value = Reflect.get(object, name, receiver) as unknown
          if (typeof value !== 'function') return value
          return (...args: unknown[]) => {
            if (name === 'update') updates.push((args[0] as { samples: unknown }).samples)
            if (name === method && left-- === 0) throw new Error('killed')
            return value.apply(object, args) as unknown
          }
        },
      })
    const runner = slowRunner({ engine: policy.engine, store, reward: countUp })
    const first = { learner: dying(policy.learner), engine: policy.engine, runner, store: dying(store) }
    await expect(startProcess(store, {}, first)).rejects.toThrow('killed')
    const committed = store.steps().length
    const died = updates.splice(0)
    const again = createBigramPolicy(9)
    // No group is slow this time, so other groups are the oldest that are ready.
    const quickRunner = createDirectRunner({ engine: again.engine, store, reward: countUp })
    const second = { learner: dying(again.learner), engine: again.engine, runner: quickRunner }
    left = -1
    const { ledger } = await startProcess(store, {}, second)
    expect(ledger.unexplained).toBe(0)
    // The steps after the last checkpoint are repeated. The step that was not committed follows.
    const repeated = died.slice(Math.floor(committed / 4) * 4)
    expect(updates.slice(0, repeated.length)).toEqual(repeated)
  })

  it('says of a stop what it found in flight, and goes on from there', async () => {
    const store = createMemoryStore(directory)
    const stop = new AbortController()
    let left = 150
    const beforeRollout = () => {
      if (left-- === 0) stop.abort()
    }
    const stopped = await startProcess(store, {}, { signal: stop.signal, beforeRollout })
    expect(stopped).toMatchObject({ status: 'stopped', ledger: { unexplained: 0 } })
    expect(stopped.steps).toBeGreaterThan(1)
    expect(stopped.ledger.untrained['in-flight']).toBeGreaterThan(7)
    const resumed = await startProcess(store)
    expect(resumed).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
    expect(resumed.ledger.untrained['in-flight']).toBeUndefined()
  })

  it('draws groups anew whose rollouts all failed, beside those that go on', async () => {
    const store = createMemoryStore(directory)
    const reward = ((request: RolloutRequest, completion: readonly number[]) =>
      /^train\/[23]\//.test(request.key) ? null : countUp(request, completion)) as never
    const start = () => {
      const { engine, learner } = createBigramPolicy(9)
      return startProcess(store, {}, { engine, learner, runner: slowRunner({ engine, store, reward }) })
    }
    await expect(start()).rejects.toThrow('All 32 rollouts of step 2 failed')
    const { status, ledger } = await start()
    expect(status).toBe('finished')
    expect(ledger.unexplained).toBe(0)
    expect(ledger.sampled).toBe([...store.episodes({})].length)
    // The four groups that failed together have their episodes, and four others replace them.
    const names = [...store.episodes({ split: 'train' })].map(({ group }) => group)
    expect(new Set(names).size).toBe(steps * 4 + 4)
    expect(new Set(names.filter((name) => /^train\/\d+\.1\//.test(name))).size).toBe(4)
  })

  it('goes on with the two survivors of a group', async () => {
    const store = createMemoryStore(directory)
    const reward = ((request: RolloutRequest) => (request.split === 'train' && request.sample % 8 < 6 ? null : request.sample % 2)) as never
    const { engine, learner } = createBigramPolicy(9)
    const { curve, ledger } = await startProcess(store, { steps: 2 }, { engine, learner, runner: slowRunner({ engine, store, reward }) })
    expect(curve.map(({ metrics }) => [metrics['trainedTokens'], metrics['groupsOfOne']])).toEqual([
      [8, 0],
      [8, 0],
    ])
    expect(ledger).toMatchObject({ unexplained: 0, untrained: { 'failed-episode': 48 } })
  })
})
