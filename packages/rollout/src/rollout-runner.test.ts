import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentProgram, type Message, type RewardOutput, type RolloutContext, TrainError, type Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { memoryEnvironment } from './testing/memory-environment.ts'
import { memoryStore } from './testing/memory-store.ts'
import { agentWithTools, exactReward, program, rolloutRequest } from './testing/rollout-fixtures.ts'
import { askOnce, type RunnerSetup, setUpRunner } from './testing/set-up-runner.ts'

const never = new AbortController().signal
const user: Message = { role: 'user', content: 'Go on.' }

test('scores an answer, keeps it and tells of it', async () => {
  const { runner, store, gateway, events } = setUpRunner({ agent: askOnce })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({
    rollout: 'a',
    attempt: 0,
    taskId: 'task-a',
    answer: 'yes',
    stopReason: 'completed',
    reward: 1,
    scores: { exact: 1 },
  })
  expect(episode.error).toBeUndefined()
  expect(episode.messages).toEqual([user, { role: 'assistant', content: 'yes' }])
  expect(store.episode('a')).toEqual(episode)
  expect(store.turns.map(({ turn }) => turn)).toEqual(episode.trajectories[0]!.turns)
  expect(gateway.openSessions()).toBe(0)
  expect(events.map(({ type }) => type)).toEqual(['rollout-start', 'rollout-end'])
  expect(events[1]).toMatchObject({ rollout: 'a', stopReason: 'completed', reward: 1, turns: 1, toolCalls: 0, sampledTokens: 3 })
})

test('gives the kept episode of a finished rollout without running the agent again', async () => {
  let runs = 0
  const { runner } = setUpRunner({
    agent: async (_, ask) => {
      runs++
      return (await ask()).content
    },
  })
  const first = await runner.run(rolloutRequest('a'), never)
  expect(await runner.run(rolloutRequest('a'), never)).toEqual(first)
  expect(runs).toBe(1)
  expect(runner.counts().finished).toBe(1)
})

test('a program with two agents of one name is refused before anything runs', () => {
  const agents = ['solver', 'judge', 'solver'].map(agentWithTools)
  expect(() => setUpRunner({ agent: askOnce, program: program(async () => ({ answer: null, messages: [] }), agents) })).toThrow(
    expect.objectContaining({ code: 'AGENT_INVALID', message: 'Two agents are named "solver"; give each its own name.' }),
  )
})

test('an agent that throws is a failed episode with the turns so far', async () => {
  const { runner } = setUpRunner({
    agent: async (_, ask) => {
      await ask()
      throw new TypeError('no such field')
    },
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'failed', reward: null, answer: null, error: { code: 'AGENT_FAILED', boundary: 'agent' } })
  expect(episode.error!.message).toContain('no such field')
  expect(episode.trajectories[0]!.turns).toHaveLength(1)
  expect(episode.messages).toEqual([user, { role: 'assistant', content: 'yes' }])
})

test('an agent that throws before it returns a promise is a failed episode', async () => {
  const throws: AgentProgram['run'] = () => {
    throw new TypeError('at once')
  }
  const { runner } = setUpRunner({ agent: askOnce, program: program(throws) })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'failed', error: { code: 'AGENT_FAILED' } })
})

test('a program that returns no answer of the contract is a failed episode', async () => {
  for (const [answer, what] of [
    ['yes', 'a string'],
    [undefined, 'undefined'],
    [{ answer: 'yes' }, 'another object'],
  ] as const) {
    const { runner } = setUpRunner({ agent: askOnce, program: program(async () => answer as never) })
    const { stopReason, error } = await runner.run(rolloutRequest('a'), never)
    expect({ stopReason, code: error?.code }).toEqual({ stopReason: 'failed', code: 'AGENT_FAILED' })
    expect(error?.message).toContain(`returned ${what}; return { answer, messages }`)
  }
})

test('an agent that never calls the model is a failure with a reason', async () => {
  const { runner } = setUpRunner({ agent: async () => 'yes' })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({
    stopReason: 'no-model-call',
    reward: null,
    error: { code: 'AGENT_NO_MODEL_CALL' },
  })
})

test('an agent that asks a client of its own is scored where its calls need not be seen', async () => {
  const { runner } = setUpRunner({ agent: async () => 'yes', requiresModelCall: false })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'completed', answer: 'yes', reward: 1 })
  expect(episode.error).toBeUndefined()
  expect(episode.trajectories.flatMap(({ turns }) => turns)).toEqual([])
})

test('a limit of an agent whose calls are not seen counts as one of the policy', async () => {
  const answer = { answer: null, messages: [], stopped: 'turn-limit' as const }
  const { runner } = setUpRunner({ agent: askOnce, program: program(async () => answer), requiresModelCall: false })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'turn-limit', reward: 0 })
})

test('an agent and its state see what the row declares for them, and nothing else of it; the reward sees all', async () => {
  const task = {
    version: 1 as const,
    id: 'a',
    hash: 'h',
    input: 'Which metal?',
    data: { hint: 'yellow' },
    files: ['/data/photos/photo.png'],
    dataSource: 'metals',
    extraInfo: { 'Annotator Metadata': { Steps: 'It is gold.' } },
  }
  const seen: unknown[] = []
  const scored: unknown[] = []
  const { runner } = setUpRunner({
    agent: async (context, ask, own) => {
      await context.state({ setup: ({ task: ofState }) => seen.push(ofState) })
      seen.push(own, context.task)
      return (await ask()).content
    },
    reward: { ...exactReward(), score: async (input) => ({ reward: scored.push(input.task), scores: {} }) },
  })
  await runner.run(rolloutRequest('a', { task }), never)
  expect(scored).toEqual([task])
  const { extraInfo: _, ...declared } = task
  const own = { ...declared, input: 'Which metal?\n\nFiles in the working directory: photo.png', files: ['photo.png'] }
  expect(seen).toEqual([own, own, own])
})

test('agent and states read a file of the task by its name; a name that it does not have is a failure of the attempt', async () => {
  const read: string[] = []
  const { runner } = setUpRunner({
    baseDirectory: import.meta.dirname,
    retries: 0,
    async agent({ state, file, task }, ask) {
      read.push(await state({ setup: async (attempt) => String(await attempt.file('rollout-runner.ts')) }))
      read.push(String(await file('rollout-runner.ts')))
      if (task.id === 'b') await file('rollout-options.ts')
      return (await ask()).content
    },
  })
  const run = (id: string) =>
    runner.run(rolloutRequest(id, { task: { ...rolloutRequest(id).task, id, files: ['./rollout-runner.ts'] } }), never)
  expect(await run('a')).toMatchObject({ reward: 1 })
  expect(read).toEqual(Array(2).fill(await readFile(join(import.meta.dirname, 'rollout-runner.ts'), 'utf8')))
  expect(await run('b')).toMatchObject({ reward: null, error: { code: 'ENVIRONMENT_START_FAILED' } })
})

test('once the agent has returned, what it left running is cancelled and late calls are refused', async () => {
  let kept: RolloutContext | undefined
  let left: Promise<unknown> = Promise.resolve()
  const call = (_: unknown, signal: AbortSignal) => sleep(60_000, { content: 'late', isError: false }, { signal })
  const { runner } = setUpRunner({
    agent: async (context, ask) => {
      const tools = await context.tools()
      left = tools.call({ name: 'echo', arguments: {} }, context.signal).catch((error: unknown) => error)
      kept = context
      return (await ask()).content
    },
    environment: memoryEnvironment({ call }),
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  const ended = { code: 'AGENT_LIMIT', message: expect.stringContaining('has ended') }
  expect(episode).toMatchObject({ stopReason: 'completed', toolCalls: [{ name: 'echo', isError: true }] })
  expect(await left).toMatchObject(ended)
  await expect(kept!.tools()).rejects.toMatchObject(ended)
  expect(() => kept!.policy()).toThrow('has ended')
  expect(() => kept!.invoke('agent')).toThrow('has ended')
  expect(kept!.signal.aborted).toBe(true)
})

test('a rollout that was answered when the stop came keeps its result', async () => {
  const stop = new AbortController()
  const score = async () => {
    stop.abort(new Error('SIGINT'))
    return { reward: 1, scores: {} }
  }
  const { runner, store } = setUpRunner({ agent: askOnce, reward: { ...exactReward(), score } })
  expect(await runner.run(rolloutRequest('a'), stop.signal)).toMatchObject({ stopReason: 'completed', reward: 1 })
  expect(store.episode('a')).not.toBeNull()
  const rejecting = new AbortController()
  const reject = async () => {
    rejecting.abort(new Error('SIGINT'))
    throw new TrainError('REWARD_FAILED', 'It was stopped.')
  }
  const other = setUpRunner({ agent: askOnce, reward: { ...exactReward(), score: reject } })
  await expect(other.runner.run(rolloutRequest('a'), rejecting.signal)).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  expect(other.store.episode('a')).toBeNull()
})

test('ties tool calls to the turns that asked for them, and stops at their limit', async () => {
  const toolCalls = (call: number) => [{ id: `id-${call}`, name: 'echo', arguments: `{ "call": ${call} }` }]
  const { runner } = setUpRunner({
    say: (_messages, _session, call) => ({ toolCalls: toolCalls(call) }),
    agent: async (context, ask) => {
      const tools = await context.tools()
      for (let call = 0; ; call++) {
        await ask()
        const id = call === 0 ? undefined : `id-${call}`
        if (call === 1)
          await context.runTool('agent', { id: 'id-1', name: 'echo', arguments: '{}' }, async () => ({ content: 'local', isError: true }))
        else await tools.call({ id, name: 'echo', arguments: { call } }, context.signal)
      }
    },
    limits: { maxToolCalls: 3 },
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ stopReason: 'tool-call-limit', reward: 0 })
  expect(episode.toolCalls.map(({ turn, id, content, isError }) => ({ turn, id, content, isError }))).toEqual([
    { turn: 0, id: 'id-0', content: '{"call":0}', isError: false },
    { turn: 1, id: 'id-1', content: 'local', isError: true },
    { turn: 2, id: 'id-2', content: '{"call":2}', isError: false },
  ])
  expect(runner.counts()).toMatchObject({ toolCalls: 3, toolErrors: 1, episodesByStopReason: { 'tool-call-limit': 1 } })
})

test('leases tools once an agent, on first use, and gives all of them back', async () => {
  const environment = memoryEnvironment()
  const { runner, gateway } = setUpRunner({ agent: askOnce, environment })
  await runner.run(rolloutRequest('none'), never)
  expect(environment.requests).toHaveLength(0)
  const agents = [agentWithTools('planner'), agentWithTools('worker'), { name: 'bare', trainable: false }]
  const swarm = setUpRunner({
    agent: askOnce,
    environment,
    program: program(async (_, context) => {
      await Promise.all([context.tools('planner'), context.tools('planner'), context.tools('worker')])
      expect(await (await context.tools('bare')).list()).toEqual([])
      expect(() => context.policy('nobody')).toThrow('"planner", "worker", "bare"')
      context.invoke('worker', { startedBy: [{ trajectory: 'planner', toolCall: null }] }).end(true)
      throw new Error('planned')
    }, agents),
  })
  const episode = await swarm.runner.run(rolloutRequest('a'), never)
  expect(environment.requests).toHaveLength(1)
  expect(environment.selections.map(({ agent }) => agent)).toEqual(['planner', 'worker'])
  expect(environment.openLeases()).toBe(0)
  expect(episode.trajectories.map(({ id, startedBy }) => [id, startedBy])).toEqual([
    ['planner', []],
    ['worker', [{ trajectory: 'planner', turn: null, toolCall: null }]],
    ['bare', []],
  ])
  expect(gateway.openSessions()).toBe(0)
})

test('a retryable failure gets a new attempt; the old one keeps its turns, without a result', async () => {
  const { runner, store, events } = setUpRunner({
    say: (_messages, { attempt }, call) =>
      attempt === 0 && call === 1 ? { error: new TrainError('POLICY_UNAVAILABLE', 'The engine is gone.') } : { content: 'yes' },
    agent: async (_, ask) => {
      await ask()
      // Another client words the failure in its own way.
      return (await ask().catch(() => Promise.reject(new Error('503 status code')))).content
    },
  })
  const episode = await runner.run(rolloutRequest('a'), never)
  expect(episode).toMatchObject({ attempt: 1, stopReason: 'completed', reward: 1 })
  expect(store.turns.map(({ attempt, turn }) => [attempt, turn.index])).toEqual([
    [0, 0],
    [1, 0],
    [1, 1],
  ])
  expect(runner.counts()).toMatchObject({ retries: 1, finished: 1, supersededTokens: 3 })
  const [{ policy }] = episode.trajectories as [Trajectory]
  expect([runner.supersededTokens(), runner.supersededTokens(policy), runner.supersededTokens('another')]).toEqual([3, 3, 0])
  expect(events.map(({ type }) => type)).toEqual(['rollout-start', 'warning-raised', 'rollout-end'])
})

test('gives up after its retries, and never retries what will not pass', async () => {
  const fail = (error: Error) => memoryEnvironment({ beforeTools: () => Promise.reject(error) })
  const agent: RunnerSetup['agent'] = async (context) => {
    await context.tools()
    return 'yes'
  }
  const passing = fail(new TrainError('ENVIRONMENT_START_FAILED', 'It did not start.'))
  const retried = setUpRunner({ agent, environment: passing, retries: 1 })
  expect(await retried.runner.run(rolloutRequest('a'), never)).toMatchObject({
    attempt: 1,
    stopReason: 'failed',
    error: { code: 'ENVIRONMENT_START_FAILED' },
  })
  expect(passing.requests).toHaveLength(2)
  const lasting = fail(new TrainError('ENVIRONMENT_TOOLS_CHANGED', 'The tools changed.'))
  const once = setUpRunner({ agent, environment: lasting })
  expect(await once.runner.run(rolloutRequest('a'), never)).toMatchObject({ attempt: 0, stopReason: 'failed', reward: null })
  expect(lasting.requests).toHaveLength(1)
})

test('a policy that is away leaves no result: the rollout rejects, and runs again', async () => {
  let isAway = true
  const { runner, store } = setUpRunner({
    say: () => (isAway ? { error: new TrainError('POLICY_UNAVAILABLE', 'The engine is gone.') } : { content: 'yes' }),
    agent: async (_, ask) => (await ask()).content,
  })
  await expect(runner.run(rolloutRequest('a'), never)).rejects.toMatchObject({ code: 'POLICY_UNAVAILABLE', message: 'The engine is gone.' })
  expect(store.episode('a')).toBe(null)
  isAway = false
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ attempt: 3, stopReason: 'completed', reward: 1 })
})

test('a rollout that the environment failed runs again where it is asked for again, and one that its agent failed does not', async () => {
  const store = memoryStore()
  const agent: RunnerSetup['agent'] = async (context, ask) => {
    if (context.rollout === 'agent') throw new Error('It broke.')
    await context.tools()
    return (await ask()).content
  }
  const environment = memoryEnvironment({ beforeTools: () => Promise.reject(new TrainError('TOOL_SERVER_DIED', 'It died.')) })
  const first = setUpRunner({ agent, store, environment, retries: 0 })
  for (const key of ['environment', 'agent'])
    expect(await first.runner.run(rolloutRequest(key), never)).toMatchObject({ attempt: 0, stopReason: 'failed' })
  const second = setUpRunner({ agent, store })
  expect(await second.runner.run(rolloutRequest('environment'), never)).toMatchObject({ attempt: 1, stopReason: 'completed' })
  expect(await second.runner.run(rolloutRequest('agent'), never)).toMatchObject({ attempt: 0, stopReason: 'failed' })
})

test('a reward whose process ended is asked once more', async () => {
  let calls = 0
  const reward = {
    name: 'dies',
    close: async () => {},
    score: async () => {
      if (++calls === 1) throw new TrainError('REWARD_PROCESS_DIED', 'It ended.')
      return { reward: 1, scores: {} }
    },
  }
  const { runner } = setUpRunner({ reward, agent: async (_, ask) => (await ask()).content })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({ stopReason: 'completed', reward: 1 })
})

test('a reward that rejects fails the episode and keeps its answer', async () => {
  const reward = { ...exactReward(), score: async () => Promise.reject(new TrainError('REWARD_INVALID', 'The reward returned NaN.')) }
  const { runner } = setUpRunner({ agent: askOnce, reward })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({
    stopReason: 'failed',
    reward: null,
    answer: 'yes',
    error: { code: 'REWARD_INVALID' },
  })
})

const rewarding = (output: RewardOutput) => ({ ...exactReward(), score: async () => output })

test('keeps the rewards of single agents with the episode, unless the reward abstained', async () => {
  const agents = { agent: 0.5 }
  const scored = setUpRunner({ agent: askOnce, reward: rewarding({ reward: 1, scores: {}, agents }) })
  expect(await scored.runner.run(rolloutRequest('a'), never)).toMatchObject({ reward: 1, agentRewards: agents })
  const abstained = setUpRunner({ agent: askOnce, reward: rewarding({ reward: null, scores: {}, agents }) })
  expect(await abstained.runner.run(rolloutRequest('a'), never)).not.toHaveProperty('agentRewards')
})

test('a reward of an agent that the program does not have fails the episode and lists those it has', async () => {
  const { runner } = setUpRunner({ agent: askOnce, reward: rewarding({ reward: 1, scores: {}, agents: { agnet: 1 } }) })
  expect(await runner.run(rolloutRequest('a'), never)).toMatchObject({
    stopReason: 'failed',
    reward: null,
    error: {
      code: 'REWARD_INVALID',
      message: 'Reward "exact" returned a reward for agent "agnet", which the program does not have. Did you mean "agent"? It has "agent".',
    },
  })
})

test('the store has a rollout while it waits for a slot', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { runner, store } = setUpRunner({
    agent: async (_, ask) => {
      await promise
      return (await ask()).content
    },
    concurrency: 1,
  })
  const running = runner.runAll(
    ['a', 'b'].map((key) => rolloutRequest(key)),
    never,
  )
  await expect.poll(() => ['a', 'b'].map((key) => store.rollout(key)?.status)).toEqual(['running', 'queued'])
  resolve()
  await running
  expect(['a', 'b'].map((key) => store.rollout(key)?.status)).toEqual(['done', 'done'])
})

test('runs no more than its concurrency at once and answers in the order of the requests', async () => {
  let running = 0
  let most = 0
  const { runner } = setUpRunner({
    agent: async (context, ask) => {
      most = Math.max(most, ++running)
      await sleep(context.rollout === '0' ? 60 : 5)
      running--
      return (await ask()).content
    },
    concurrency: 3,
  })
  const requests = Array.from({ length: 10 }, (_, index) => rolloutRequest(String(index)))
  const episodes = await runner.runAll(requests, never)
  expect(episodes.map(({ rollout }) => rollout)).toEqual(requests.map(({ key }) => key))
  expect(most).toBe(3)
  expect(runner.counts()).toMatchObject({ queued: 0, running: 0, finished: 10, episodesByStopReason: { completed: 10 } })
})

test('a stop keeps what is finished, cancels the rest without results, and the rest runs again', async () => {
  let block = true
  const { runner, store, environment, gateway, events } = setUpRunner({
    agent: async (context, ask) => {
      await context.tools()
      const { content } = await ask()
      if (block && context.rollout !== '0') await sleep(60_000, undefined, { signal: context.signal })
      return content
    },
    concurrency: 2,
  })
  const requests = ['0', '1', '2', '3'].map((key) => rolloutRequest(key))
  const stop = new AbortController()
  const all = runner.runAll(requests, stop.signal)
  all.catch(() => {})
  while (!store.episode('0') || store.turns.length < 3) await sleep(5)
  stop.abort(new Error('SIGINT'))
  await expect(all).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  expect([...store.episodes()].map(({ rollout }) => rollout)).toEqual(['0'])
  expect([environment.openLeases(), gateway.openSessions(), runner.counts().running]).toEqual([0, 0, 0])
  expect(events.filter((event) => event.type === 'rollout-end').map(({ stopReason }) => stopReason)).toEqual([
    'completed',
    'cancelled',
    'cancelled',
  ])
  expect(requests.map(({ key }) => store.rollout(key)?.status)).toEqual(['done', 'cancelled', 'cancelled', 'cancelled'])
  block = false
  const episodes = await runner.runAll(requests, never)
  expect(episodes.map(({ attempt }) => attempt)).toEqual([0, 1, 1, 0])
})

test('a store that takes nothing more rejects the run and stops the other rollouts', async () => {
  const { runner, store } = setUpRunner({
    agent: async (context, ask) => {
      if (context.rollout === '1') await sleep(60_000, undefined, { signal: context.signal })
      return (await ask()).content
    },
  })
  store.failWith('appendTurn', new TrainError('STORE_FULL', 'The disk is full.'))
  await expect(runner.runAll([rolloutRequest('0'), rolloutRequest('1')], never)).rejects.toMatchObject({ code: 'STORE_FULL' })
  expect([...store.episodes()]).toEqual([])
  expect(runner.counts()).toMatchObject({ running: 0, queued: 0 })
})

test('closing cancels what runs and what waits', async () => {
  const { runner } = setUpRunner({ agent: async (context) => sleep(60_000, null, { signal: context.signal }), concurrency: 1 })
  const all = [runner.run(rolloutRequest('a'), never), runner.run(rolloutRequest('b'), never)]
  const settled = Promise.allSettled(all)
  await sleep(10)
  await runner.close()
  expect((await settled).map((result) => result.status === 'rejected' && result.reason.code)).toEqual([
    'ROLLOUT_CANCELLED',
    'ROLLOUT_CANCELLED',
  ])
  await expect(runner.run(rolloutRequest('c'), never)).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
})

test('an attempt whose tool server died has no reward, though the agent goes on to an answer; the next has a lease of its own', async () => {
  const environment = memoryEnvironment({ call: () => Promise.reject(new TrainError('TOOL_SERVER_DIED', 'The server is gone.')) })
  const agent: RunnerSetup['agent'] = async (context, ask) => {
    const tools = await context.tools()
    await ask()
    if (context.attempt < 2) await tools.call({ name: 'echo', arguments: {} }, context.signal).catch(() => {})
    return context.attempt < 2 ? 'no' : 'yes'
  }
  const retried = setUpRunner({ agent, environment })
  expect(await retried.runner.run(rolloutRequest('a'), never)).toMatchObject({ attempt: 2, stopReason: 'completed', reward: 1 })
  expect(environment.requests).toHaveLength(3)
  const { runner } = setUpRunner({ agent, environment, retries: 0 })
  expect(await runner.run(rolloutRequest('b'), never)).toMatchObject({
    stopReason: 'failed',
    reward: null,
    error: { code: 'TOOL_SERVER_DIED' },
  })
})
