import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type OwnedRunStore, openRunStore } from './open-run-store.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

/** A store's knowledge in plain maps. */
interface Model {
  readonly attempts: Map<string, number>
  /** `key attempt` to the number of turns. */
  readonly turns: Map<string, number>
  /** Key to attempt. */
  readonly results: Map<string, number>
  readonly trained: Set<string>
  steps: number
}

interface Real {
  readonly path: string
  readonly threaded: boolean
  store: OwnedRunStore
}

const open = (path: string, thread: boolean): Promise<OwnedRunStore> => openRunStore({ path, batchMs: 0, thread })

type Command = fc.AsyncCommand<Model, Real>

const refused = { code: 'STORE_CONFLICT' }
const chain = (attempt: number, count: number) => turnChain(attempt, count)
const isOpen = (model: Model, key: string, attempt: number) => model.attempts.get(key) === attempt && !model.results.has(key)

class Begin implements Command {
  readonly key: string
  constructor(key: string) {
    this.key = key
  }
  check = () => true
  async run(model: Model, { store }: Real) {
    const { attempt, episode } = await store.begin(runRequest(this.key))
    const result = model.results.get(this.key)
    if (result !== undefined) {
      expect([attempt, episode?.attempt]).toEqual([result, result])
      return
    }
    const before = model.attempts.get(this.key)
    expect([attempt, episode]).toEqual([before === undefined ? 0 : before + 1, null])
    model.attempts.set(this.key, attempt)
  }
  toString = () => `begin ${this.key}`
}

class AppendTurn implements Command {
  readonly key: string
  readonly attempt: number
  constructor(key: string, attempt: number) {
    this.key = key
    this.attempt = attempt
  }
  check = () => true
  async run(model: Model, { store }: Real) {
    const name = `${this.key} ${this.attempt}`
    const count = model.turns.get(name) ?? 0
    const write = store.appendTurn(this.key, this.attempt, 'agent', chain(this.attempt, count + 1)[count]!)
    if (!isOpen(model, this.key, this.attempt)) return expect(write).rejects.toMatchObject(refused)
    await write
    model.turns.set(name, count + 1)
  }
  toString = () => `appendTurn ${this.key} ${this.attempt}`
}

class Finish implements Command {
  readonly key: string
  readonly attempt: number
  constructor(key: string, attempt: number) {
    this.key = key
    this.attempt = attempt
  }
  check = () => true
  async run(model: Model, { store }: Real) {
    const count = model.turns.get(`${this.key} ${this.attempt}`) ?? 0
    const write = store.finish(episodeOf(runRequest(this.key), this.attempt, chain(this.attempt, count)))
    if (!isOpen(model, this.key, this.attempt)) return expect(write).rejects.toMatchObject(refused)
    await write
    model.results.set(this.key, this.attempt)
  }
  toString = () => `finish ${this.key} ${this.attempt}`
}

class CommitStep implements Command {
  readonly keys: readonly string[]
  constructor(keys: readonly string[]) {
    this.keys = keys
  }
  check = () => true
  async run(model: Model, { store }: Real) {
    const write = store.commitStep({ step: model.steps, weightVersion: 1, rollouts: this.keys, metrics: {}, checkpoint: null })
    if (this.keys.some((key) => !model.results.has(key) || model.trained.has(key))) return expect(write).rejects.toMatchObject(refused)
    await write
    model.steps++
    for (const key of this.keys) model.trained.add(key)
  }
  toString = () => `commitStep ${this.keys.join(' ')}`
}

class Reopen implements Command {
  check = () => true
  async run(_: Model, real: Real) {
    await real.store.close()
    real.store = await open(real.path, real.threaded)
  }
  toString = () => 'reopen'
}

const key = fc.constantFrom('a', 'b', 'c')
const attempt = fc.nat(2)
const commands = fc.commands(
  [
    key.map((name) => new Begin(name)),
    fc.tuple(key, attempt).map(([name, number]) => new AppendTurn(name, number)),
    fc.tuple(key, attempt).map(([name, number]) => new AppendTurn(name, number)),
    fc.tuple(key, attempt).map(([name, number]) => new Finish(name, number)),
    fc.uniqueArray(key, { minLength: 1 }).map((names) => new CommitStep(names)),
    fc.constant(new Reopen()),
  ],
  { maxCommands: 40 },
)

test.each([
  ['in the thread that opened it', false, 40],
  ['in a thread of its own', true, 4],
])('does what plain maps do, over any history and any reopening, %s', async (_, threaded, numRuns) => {
  await fc.assert(
    fc.asyncProperty(commands, async (history) => {
      await using folder = await temporaryFolder()
      const real: Real = { path: folder.path, threaded, store: await open(folder.path, threaded) }
      const model: Model = { attempts: new Map(), turns: new Map(), results: new Map(), trained: new Set(), steps: 0 }
      try {
        await fc.asyncModelRun(() => ({ model, real }), history)
        const { store } = real
        for (const [name, result] of model.results) {
          const turns = chain(result, model.turns.get(`${name} ${result}`) ?? 0)
          expect(store.episode(name)?.trajectories[0]?.turns ?? []).toEqual(turns)
        }
        const counted = store.counts()
        expect(counted).toMatchObject({ rollouts: model.attempts.size, finished: model.results.size, trained: model.trained.size })
        expect(counted.turns).toBe([...model.turns.values()].reduce((sum, count) => sum + count, 0))
        expect(store.steps().flatMap(({ rollouts }) => rollouts)).toEqual([...model.trained])
      } finally {
        await real.store.close()
      }
    }),
    { numRuns },
  )
})
