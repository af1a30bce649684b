import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { AttemptState } from '../contracts/agent-program.ts'
import { TrainError } from '../protocol/errors.ts'
import { createAttemptStates } from './attempt-states.ts'

const task = { version: 1 as const, id: 't', hash: '', input: 'x', data: {}, dataSource: '', extraInfo: {} }

function setUp({ timeoutMs = 1000, graceMs = 20 } = {}) {
  const ending = new AbortController()
  const attempt = { rollout: 'r', attempt: 2, task, file: async () => Buffer.of(), signal: ending.signal }
  return { ending, states: createAttemptStates({ attempt, timeoutMs, graceMs }) }
}

/** Logs set-ups and tear-downs. A state is named after its place in the log. */
function counter() {
  const log: string[] = []
  const state: AttemptState<{ name: string }> = {
    setup: async ({ rollout, attempt, task }) => {
      log.push(`set up for ${rollout} ${attempt} ${task.id}`)
      return { name: `state ${log.length}` }
    },
    teardown: async ({ name }, { attempt }) => {
      log.push(`${name} torn down in ${attempt}`)
    },
  }
  return { log, state }
}

test('sets up once for all that ask, and tears down once', async () => {
  const { states } = setUp()
  const { log, state } = counter()
  const [first, second] = await Promise.all([states.get(state), states.get(state)])
  expect(second).toBe(first)
  expect(await states.get(state)).toBe(first)
  expect(await states.close()).toEqual([])
  expect(log).toEqual(['set up for r 2 t', 'state 1 torn down in 2'])
})

test('two definitions, and two attempts, have states of their own', async () => {
  const [one, other] = [setUp(), setUp()]
  const [a, b] = [counter(), counter()]
  const all = [await one.states.get(a.state), await one.states.get(b.state), await other.states.get(a.state)]
  expect(new Set(all).size).toBe(3)
  await Promise.all([one.states.close(), other.states.close()])
  expect(a.log.filter((line) => line.includes('torn down'))).toEqual(['state 1 torn down in 2', 'state 2 torn down in 2'])
})

test('nothing is set up that nobody asks for', async () => {
  expect(await setUp().states.close()).toEqual([])
})

test.each([
  ['throws', () => Promise.reject(new Error('no database.'))],
  [
    'throws at once',
    () => {
      throw new Error('no database')
    },
  ],
  // A limit that a set-up throws is not the agent's own.
  ['throws a limit', () => Promise.reject(new TrainError('AGENT_LIMIT', 'no database'))],
])('a set-up that %s is a fault of the environment, and has no tear-down', async (_, setup) => {
  const { states } = setUp()
  let tornDown = 0
  const getting = states.get({ setup, teardown: () => (tornDown += 1) })
  await expect(getting).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: 'The set-up of a state of rollout "r" failed: no database. Correct it, or what it depends on.',
    retryable: true,
  })
  expect(await states.close()).toEqual([])
  expect(tornDown).toBe(0)
})

test('a set-up has a deadline, and what it makes afterwards is torn down', async () => {
  const { states } = setUp({ timeoutMs: 20, graceMs: 5 })
  const late = Promise.withResolvers<string>()
  const torn = Promise.withResolvers<string>()
  const signals: AbortSignal[] = []
  const getting = states.get({
    setup: ({ signal }) => {
      signals.push(signal)
      return late.promise
    },
    teardown: (state) => torn.resolve(state),
  })
  await expect(getting).rejects.toMatchObject({ code: 'ENVIRONMENT_START_FAILED', message: expect.stringContaining('more than 20 ms') })
  expect(signals[0]?.aborted).toBe(true)
  expect(await states.close()).toMatchObject([{ code: 'ENVIRONMENT_START_FAILED', message: expect.stringContaining('more than 5 ms') }])
  late.resolve('at last')
  expect(await torn.promise).toBe('at last')
})

test('the end of the attempt ends a set-up, with the reason of its signal', async () => {
  const { states, ending } = setUp()
  const reason = new TrainError('AGENT_LIMIT', 'time is up')
  const aborted = Promise.withResolvers<unknown>()
  const getting = states.get({
    setup: ({ signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted.resolve(signal.reason)
          reject(signal.reason)
        }),
      ),
  })
  ending.abort(reason)
  await expect(getting).rejects.toBe(reason)
  expect(await aborted.promise).toBe(reason)
  await expect(states.get(counter().state)).rejects.toBe(reason)
  expect(await states.close()).toEqual([])
})

test('a tear-down that throws or hangs is told of, and keeps no other from running', async () => {
  const { states } = setUp({ timeoutMs: 20 })
  const { log, state } = counter()
  await states.get({ setup: () => 1, teardown: () => Promise.reject(new Error('locked')) })
  await states.get({ setup: () => 2, teardown: () => delay(60_000, null, { ref: false }) })
  await states.get(state)
  expect((await states.close()).map(({ message }) => message)).toEqual([
    expect.stringContaining('tear-down of a state of rollout "r" failed: locked.'),
    expect.stringContaining('failed: it took more than 20 ms.'),
  ])
  expect(log).toHaveLength(2)
})
