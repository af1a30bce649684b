import { AttemptAssignment, type AttemptExecutor, AttemptOutcome, TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createAttemptExecutor } from './attempt-executor.ts'
import { memoryEnvironment } from './testing/memory-environment.ts'
import { memoryGateway } from './testing/memory-gateway.ts'
import { program, rolloutRequest } from './testing/rollout-fixtures.ts'
import { type RunnerSetup, setUpRunner } from './testing/set-up-runner.ts'

const never = new AbortController().signal

/** Writes assignment and outcome as JSON and reads them by their schemas, as between two machines. */
function overJson({ execute, hold, resume }: AttemptExecutor): AttemptExecutor {
  return {
    hold,
    resume,
    async execute(assignment, control) {
      const outcome = await execute(AttemptAssignment.parse(JSON.parse(JSON.stringify(assignment))), control)
      return AttemptOutcome.parse(JSON.parse(JSON.stringify(outcome)))
    },
  }
}

const ends: Record<string, RunnerSetup['agent']> = {
  'answers after tool calls': async (context, ask) => {
    const tools = await context.tools()
    await tools.call({ name: 'echo', arguments: { a: 1 } }, context.signal)
    context.invoke('agent', { place: '2', startedBy: [{ trajectory: 'agent', toolCall: null }] }).end(true)
    return (await ask()).content
  },
  throws: async (_, ask) => {
    await ask()
    throw new TypeError('no such word')
  },
  'spends its tool calls': async (context) => {
    const call = () => context.runTool('agent', { id: 'x', name: 'own', arguments: '{}' }, async () => ({ content: 'ok', isError: false }))
    for (;;) await call()
  },
  'loses a server': async (context) => {
    await (await context.tools()).call({ name: 'echo', arguments: { dies: true } }, context.signal)
    return 'yes'
  },
  'never calls its model': async () => 'yes',
  hangs: () => new Promise(() => {}),
}

test.each(Object.entries(ends))('an agent that %s has the same episode where its side is reached by JSON alone', async (_, agent) => {
  const episodes = await Promise.all(
    [(executor: AttemptExecutor) => executor, overJson].map(async (through) => {
      const environment = memoryEnvironment({
        call: async ({ arguments: { dies } }) => {
          if (dies) throw new TrainError('TOOL_SERVER_DIED', 'The server ended.')
          return { content: 'echo', isError: false }
        },
      })
      const gateway = memoryGateway(() => ({ content: 'yes' }))
      const executor = createAttemptExecutor({
        program: program(async (task, context) => {
          const ask = () => gateway.call(context.policy(), [{ role: 'user', content: 'Go on.' }], context.signal)
          return { answer: await agent(context, ask, task), messages: [] }
        }),
        environment,
        abandonAfterMs: 20,
      })
      const { runner } = setUpRunner({
        agent,
        gateway,
        executor: through(executor),
        retries: 0,
        limits: { timeoutMs: 3_000, maxToolCalls: 3 },
      })
      return await runner.run(rolloutRequest('a'), never)
    }),
  )
  const timeless = episodes.map((episode) => JSON.stringify(episode, (key, value) => (key === 'timing' ? undefined : value)))
  expect(timeless[1]).toBe(timeless[0])
})

test('what an agent asks its model for while its tools are given back is refused', async () => {
  const closing = Promise.withResolvers<void>()
  const reply = Promise.withResolvers<string>()
  const { runner, gateway } = setUpRunner({
    environment: { ...memoryEnvironment(), lease: slowLease(closing.promise) },
    agent: async (context, ask) => {
      await context.tools()
      const { content } = await ask()
      const endpoint = context.policy()
      const late = () => gateway.call(endpoint, [{ role: 'user', content: 'And now?' }])
      setImmediate(() =>
        late().then(
          () => reply.resolve('answered'),
          (error: Error) => reply.resolve(error.message),
        ),
      )
      return content
    },
  })
  const episode = runner.run(rolloutRequest('a'), never)
  expect(await reply.promise).toBe('Unknown URL.')
  closing.resolve()
  expect((await episode).trajectories[0]!.turns).toHaveLength(1)
})

function slowLease(closing: Promise<void>): ReturnType<typeof memoryEnvironment>['lease'] {
  const { lease } = memoryEnvironment()
  return (request) => ({ ...lease(request), close: () => closing })
}
