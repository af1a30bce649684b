import { setTimeout as sleep } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { memoryEnvironment } from './testing/memory-environment.ts'
import { rolloutRequest } from './testing/rollout-fixtures.ts'
import { askOnce, type RunnerSetup, setUpRunner } from './testing/set-up-runner.ts'

const never = new AbortController().signal

test('a prompt that fills the context by itself has no reward: the policy never saw it', async () => {
  const { runner } = setUpRunner({
    agent: async () => {
      throw new TrainError('POLICY_CONTEXT_OVERFLOW', 'The conversation has 600 tokens, the context of "tiny" 512.')
    },
  })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({
    stopReason: 'context-overflow',
    reward: null,
    error: { code: 'POLICY_CONTEXT_OVERFLOW' },
  })
})

test('an agent that calls for ever ends at its limit of turns, with a reward of 0, of the reward function, or none', async () => {
  const agent: RunnerSetup['agent'] = async (_, ask) => {
    for (;;) await ask()
  }
  const limits = { maxTurns: 4 }
  const zero = setUpRunner({ agent, limits })
  const episode = await zero.runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'turn-limit', reward: 0, answer: null, error: { code: 'AGENT_LIMIT' } })
  expect(episode.trajectories[0]!.turns).toHaveLength(4)
  const third = { name: 'third', score: async () => ({ reward: 0.3, scores: {} }), close: async () => {} }
  const scored = setUpRunner({ agent, limits, reward: third, scoreUnfinished: 'score' })
  expect(await scored.runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'turn-limit', reward: 0.3 })
  const none = setUpRunner({ agent, limits, scoreUnfinished: 'exclude' })
  expect(await none.runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'turn-limit', reward: null })
})

test("a request's limit outweighs the runner's", async () => {
  const { runner } = setUpRunner({
    agent: async (_, ask) => {
      for (;;) await ask()
    },
    limits: { maxTurns: 4 },
  })
  const episode = await runner.run(rolloutRequest('a', { limits: { maxTurns: 2 } }), never)
  expect(episode.trajectories[0]!.turns).toHaveLength(2)
})

test('an answer given after a limit was met is not an answer', async () => {
  const { runner } = setUpRunner({
    agent: async (_, ask) => {
      await ask()
      await ask().catch(() => {})
      return 'yes'
    },
    limits: { maxTokens: 3 },
  })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'token-limit', reward: 0 })
})

test('an answer cut short is truncated, unless it stands whole in an earlier turn', async () => {
  const cut = setUpRunner({ say: () => ({ content: 'yes and then', cut: true }), agent: askOnce })
  expect(await cut.runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'truncated', reward: 0 })
  const earlier = setUpRunner({
    say: (_messages, _session, call) => (call === 0 ? { content: 'yes' } : { content: 'let me see', cut: true }),
    agent: async (_, ask) => {
      const { content } = await ask()
      await ask()
      return content
    },
  })
  expect(await earlier.runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'completed', reward: 1 })
})

// These wait for their clocks, so they run side by side.
test.concurrent('an agent that hangs ends by the time limit; its late calls are refused and its late answer is dropped', async () => {
  const gate = Promise.withResolvers<void>()
  const late = Promise.withResolvers<string[]>()
  const { runner, environment, store } = setUpRunner({
    agent: async (context, ask) => {
      const tools = await context.tools()
      await ask()
      await gate.promise
      const runTool = context.runTool('agent', { id: 'late', name: 'late', arguments: '{}' }, async () => ({ content: '', isError: false }))
      const calls = await Promise.allSettled([ask(), tools.call({ name: 'echo', arguments: {} }, never), context.tools(), runTool])
      late.resolve(calls.map(({ status }) => status))
      return 'yes'
    },
    limits: { timeoutMs: 3_000 },
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'time-limit', reward: null, answer: null, error: { code: 'AGENT_LIMIT' } })
  expect(environment.openLeases()).toBe(0)
  gate.resolve()
  expect(await late.promise).toEqual(Array(4).fill('rejected'))
  expect(store.episode('a')).toEqual(episode)
  expect(store.turns).toHaveLength(1)
  expect((await environment.counts()).toolCalls).toBe(0)
})

test.concurrent('the time limit reaches a model call and a tool call', async () => {
  const reasons: unknown[] = []
  const call = async (_: unknown, signal: AbortSignal) => {
    await sleep(60_000, undefined, { signal }).catch(() => reasons.push(signal.reason))
    return { content: '', isError: false }
  }
  const inTool = setUpRunner({
    agent: async (context, ask) => {
      await ask()
      return (await (await context.tools()).call({ name: 'echo', arguments: {} }, context.signal)).content
    },
    environment: memoryEnvironment({ call }),
    limits: { timeoutMs: 3_000 },
  })
  const episode = await inTool.runner.run(rolloutRequest('a'), never)
  expect(episode.stopReason).toBe('time-limit')
  expect(reasons).toMatchObject([{ code: 'AGENT_LIMIT', details: { stopReason: 'time-limit' } }])
  expect(episode.toolCalls).toMatchObject([{ name: 'echo', isError: true }])
  const inModel = setUpRunner({ say: () => ({ delayMs: 60_000 }), agent: askOnce, limits: { timeoutMs: 40 } })
  expect(await inModel.runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'time-limit' })
})

test.concurrent('waiting in the queue or for tools costs no time', async () => {
  const { runner } = setUpRunner({
    agent: async (context, ask) => {
      await context.tools()
      await sleep(20)
      return (await ask()).content
    },
    environment: memoryEnvironment({ beforeTools: () => sleep(3_500) }),
    concurrency: 1,
    limits: { timeoutMs: 3_000 },
  })
  const episodes = await runner.runAll([rolloutRequest('a'), rolloutRequest('b')], never)
  expect(episodes.map(({ stopReason }) => stopReason)).toEqual(['completed', 'completed'])
})

test.concurrent('while the gateway holds calls, the time of a rollout stands still, also for one that begins meanwhile', async () => {
  const { runner, gateway } = setUpRunner({ agent: askOnce, limits: { timeoutMs: 3_000 } })
  await gateway.pause({ drain: false })
  const before = runner.run(rolloutRequest('before'), never)
  await sleep(1_000)
  await gateway.pause({ drain: false })
  const meanwhile = runner.run(rolloutRequest('meanwhile'), never)
  await sleep(3_500)
  gateway.resume()
  expect([await before, await meanwhile].map(({ stopReason }) => stopReason)).toEqual(['completed', 'completed'])
})

test.concurrent('the time of a rollout stands still while its call is held back for load, and that of no other', async () => {
  const { runner } = setUpRunner({
    say: (_, { taskId }) => (taskId === 'task-held' ? { content: 'yes', heldMs: 5_000 } : { delayMs: 60_000 }),
    agent: askOnce,
    limits: { timeoutMs: 3_000 },
  })
  const [patient, slow] = await Promise.all(['held', 'slow'].map((key) => runner.run(rolloutRequest(key), never)))
  expect([patient!.stopReason, slow!.stopReason]).toEqual(['completed', 'time-limit'])
})

test.concurrent('the time of a rollout goes on after a call that was held back', async () => {
  const { runner } = setUpRunner({ say: () => ({ heldMs: 50, delayMs: 60_000 }), agent: askOnce, limits: { timeoutMs: 200 } })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'time-limit' })
})

test.concurrent('a rollout whose call is held back is cancelled at once', async () => {
  const { runner } = setUpRunner({ say: () => ({ heldMs: 600_000 }), agent: askOnce })
  const stop = new AbortController()
  const episode = runner.run(rolloutRequest('a'), stop.signal)
  setTimeout(() => stop.abort(new Error('Ctrl-C')), 50)
  await expect(episode).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
})

test.concurrent('the time of a rollout goes on after a pause', async () => {
  const { runner, gateway } = setUpRunner({ say: () => ({ delayMs: 60_000 }), agent: askOnce, limits: { timeoutMs: 60 } })
  await gateway.pause({ drain: false })
  const episode = runner.run(rolloutRequest('a'), never)
  gateway.resume()
  expect(await episode).toMatchObject({ stopReason: 'time-limit' })
})
