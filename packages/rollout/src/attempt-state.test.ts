import { type AttemptState, type RolloutContext, type RunEvent, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { RolloutRunnerOptions } from './rollout-options.ts'
import { createRolloutRunner } from './rollout-runner.ts'
import { memoryEnvironment } from './testing/memory-environment.ts'
import { memoryGateway } from './testing/memory-gateway.ts'
import { memoryStore } from './testing/memory-store.ts'
import { exactReward, program, rolloutRequest } from './testing/rollout-fixtures.ts'

const never = new AbortController().signal

/** A state that logs the attempts of its set-up and tear-down. The first `fails` set-ups of a rollout fail. */
function createState({ fails = 0 } = {}) {
  const log: string[] = []
  const live = new Set<object>()
  const definition: AttemptState<{ attempt: number }> = {
    async setup({ rollout, attempt }) {
      if (attempt < fails) throw new Error('no database')
      log.push(`${rollout}.${attempt} set up`)
      const state = { attempt }
      live.add(state)
      return state
    },
    teardown(state, { rollout, signal }) {
      expect(signal.aborted).toBe(false)
      expect(live.delete(state)).toBe(true)
      log.push(`${rollout}.${state.attempt} torn down`)
    },
  }
  return { definition, log, live }
}

type Act = (context: RolloutContext) => Promise<string | null>

/** The agent asks the policy once, then acts. */
function setUp(act: Act, options: Partial<RolloutRunnerOptions> = {}) {
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const events: RunEvent[] = []
  const runner = createRolloutRunner({
    program: program(async (_, context) => {
      await gateway.call(context.policy(), [{ role: 'user', content: 'Go on.' }], context.signal)
      return { answer: await act(context), messages: [] }
    }),
    gateway,
    environment: memoryEnvironment(),
    reward: exactReward(),
    store: memoryStore(),
    answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
    abandonAfterMs: 30,
    onEvent: (event) => events.push(event),
    ...options,
  })
  return { runner, events }
}

const hang: Act = () => new Promise(() => {})

test('a state lasts as long as its attempt, and is torn down before the result', async () => {
  const { definition, log } = createState()
  const { runner } = setUp(async ({ state }) => {
    expect(await state(definition)).toBe(await state(definition))
    expect(log).toEqual(['a.0 set up'])
    return 'yes'
  })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'completed', reward: 1 })
  expect(log).toEqual(['a.0 set up', 'a.0 torn down'])
})

test('rollouts at the same time share nothing', async () => {
  const { definition, live } = createState()
  const seen = new Set<object>()
  const { runner } = setUp(async ({ state }) => {
    seen.add(await state(definition))
    return 'yes'
  })
  await runner.runAll(
    ['a', 'b', 'c', 'd'].map((key) => rolloutRequest(key)),
    never,
  )
  expect(seen.size).toBe(4)
  expect(live.size).toBe(0)
})

test.each<[end: string, act: Act, stopReason: string]>([
  ['throws', () => Promise.reject(new TypeError('broken')), 'failed'],
  ['runs out of time', hang, 'time-limit'],
  [
    'spends its tool calls',
    ({ runTool }) =>
      runTool('agent', { id: '1', name: 'x', arguments: '{}' }, async () => ({ content: '', isError: false })).then(() => 'yes'),
    'tool-call-limit',
  ],
])('an agent that %s has its state torn down, once', async (_, act, stopReason) => {
  const { definition, log } = createState()
  const { runner } = setUp(
    async (context) => {
      await context.state(definition)
      return await act(context)
    },
    { limits: { timeoutMs: 3_000, maxToolCalls: 0 } },
  )
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason })
  expect(log).toEqual(['a.0 set up', 'a.0 torn down'])
})

test('a cancelled rollout has its state torn down, once', async () => {
  const { definition, log } = createState()
  const cancelling = new AbortController()
  const { runner } = setUp(async (context) => {
    await context.state(definition)
    cancelling.abort()
    return await hang(context)
  })
  await expect(runner.run(rolloutRequest('a'), cancelling.signal)).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  expect(log).toEqual(['a.0 set up', 'a.0 torn down'])
})

test('an attempt after a failed set-up has a state of its own', async () => {
  const { definition, log } = createState({ fails: 1 })
  const { runner } = setUp(async ({ state, attempt }) => {
    expect(await state(definition)).toEqual({ attempt })
    return 'yes'
  })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ attempt: 1, stopReason: 'completed', reward: 1 })
  expect(log).toEqual(['a.1 set up', 'a.1 torn down'])
})

test('a set-up that keeps failing has no reward, though the agent goes on to an answer', async () => {
  const { definition } = createState({ fails: 9 })
  const { runner } = setUp(async ({ state }) => {
    await state(definition).catch(() => {})
    return 'no'
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ attempt: 2, stopReason: 'failed', reward: null, error: { code: 'ENVIRONMENT_START_FAILED' } })
  expect(episode.error?.message).toContain('no database')
})

test('a set-up that hangs ends at its deadline, and costs no time of the rollout', async () => {
  const { runner } = setUp(({ state }) => state({ setup: () => new Promise<string>(() => {}) }), {
    limits: { timeoutMs: 3_000 },
    leaseTimeoutMs: 3_500,
    retries: 0,
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'failed', reward: null, error: { code: 'ENVIRONMENT_START_FAILED' } })
  expect(episode.error?.message).toContain('more than 3500 ms')
})

test('a tear-down that fails is a warning, and the result stands', async () => {
  const { runner, events } = setUp(async ({ state }) => {
    await state({ setup: () => 1, teardown: () => Promise.reject(new TrainError('CONFIG_INVALID', 'locked')) })
    return 'yes'
  })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'completed', reward: 1 })
  expect(events.filter(({ type }) => type === 'warning-raised')).toMatchObject([
    { code: 'ENVIRONMENT_START_FAILED', message: expect.stringContaining('tear-down') },
  ])
})
