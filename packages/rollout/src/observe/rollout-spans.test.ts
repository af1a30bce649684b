import { type AgentAnswer, type Invocation, ToolError, TrainError } from '@aworld-train/core'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RolloutRunnerOptions } from '../rollout-options.ts'
import { createRolloutRunner } from '../rollout-runner.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { memoryGateway } from '../testing/memory-gateway.ts'
import { memoryStore } from '../testing/memory-store.ts'
import { agentWithTools, exactReward, program, rolloutRequest } from '../testing/rollout-fixtures.ts'

const never = new AbortController().signal
const exporter = new InMemorySpanExporter()

beforeEach(() => {
  exporter.reset()
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
})

afterEach(() => {
  trace.disable()
  context.disable()
})

/** Traces as text: each span below its parent, in the order in which they began. */
function tree(): string[] {
  const spans = exporter.getFinishedSpans()
  const below = (parent: string | undefined, depth: number): string[] =>
    spans
      .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
      .sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])
      .flatMap((span) => [`${'  '.repeat(depth)}${span.name}${failureOf(span)}`, ...below(span.spanContext().spanId, depth + 1)])
  return below(undefined, 0)
}

const failureOf = ({ status, attributes }: ReadableSpan) => (status.code === SpanStatusCode.ERROR ? `: ${attributes['error.type']}` : '')
const spanOf = (name: string) => exporter.getFinishedSpans().find((span) => span.name === name)!

function runnerOf(options: Partial<RolloutRunnerOptions> = {}) {
  return createRolloutRunner({
    program: program(async (_task, { policy, tools, runTool, signal }): Promise<AgentAnswer> => {
      policy()
      await (await tools()).call({ id: 'call-1', name: 'echo', arguments: { secret: 'nobody may read' } }, signal)
      await runTool('agent', { id: 'call-2', name: 'ask', arguments: '{}' }, async () => {
        trace.getTracer('own').startSpan('inside the tool').end()
        return { content: 'no', isError: true }
      })
      return { answer: 'yes', messages: [{ role: 'user', content: 'nobody may read' }] }
    }),
    gateway: memoryGateway(() => ({ content: 'yes' })),
    environment: memoryEnvironment(),
    reward: exactReward(),
    store: memoryStore(),
    answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
    abandonAfterMs: 30,
    ...options,
  })
}

const oneCall = (run: () => Promise<AgentAnswer>) => {
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const asking = program(async (_task, { policy, signal }) => {
    await gateway.call(policy(), [{ role: 'user', content: 'Go on.' }], signal)
    return await run()
  })
  return { gateway, program: asking }
}

test('a rollout is a trace: its attempt, the tool calls in it, and the reward', async () => {
  const { gateway, program: asking } = oneCall(async () => ({ answer: 'yes', messages: [] }))
  await runnerOf({ gateway, program: asking }).run(rolloutRequest('b'), never)
  expect(tree()).toEqual(['rollout', '  invoke_agent agent', '  reward exact'])
  exporter.reset()

  await runnerOf().run(rolloutRequest('a', { sample: 3 }), never)
  expect(tree()).toEqual([
    'rollout: AGENT_NO_MODEL_CALL',
    '  invoke_agent agent: AGENT_NO_MODEL_CALL',
    '    execute_tool echo',
    '    execute_tool ask: tool_error',
    '      inside the tool',
  ])
  const [first] = exporter.getFinishedSpans()
  for (const span of exporter.getFinishedSpans()) expect(span.spanContext().traceId).toBe(first!.spanContext().traceId)
  expect(spanOf('rollout').attributes).toMatchObject({
    'gen_ai.conversation.id': 'a',
    'aworld_train.rollout': 'a',
    'aworld_train.task': 'task-a',
    'aworld_train.group': 'group',
    'aworld_train.sample': 3,
    'aworld_train.split': 'train',
    'aworld_train.stop_reason': 'no-model-call',
  })
  expect(spanOf('execute_tool echo').attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'echo',
    'gen_ai.tool.call.id': 'call-1',
    'gen_ai.agent.name': 'agent',
    'gen_ai.agent.id': 'agent',
  })
  expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes, events, status }) => [attributes, events, status]))).not.toContain(
    'nobody may read',
  )
})

test('the reward and the use of tokens are on their spans', async () => {
  const parts = oneCall(async () => ({ answer: 'yes', messages: [] }))
  await runnerOf(parts).run(rolloutRequest('a'), never)
  expect(spanOf('rollout').attributes).toMatchObject({ 'aworld_train.reward': 1, 'aworld_train.stop_reason': 'completed' })
  expect(spanOf('reward exact').attributes).toEqual({
    'gen_ai.evaluation.name': 'exact',
    'gen_ai.evaluation.score.value': 1,
    'aworld_train.score.exact': 1,
  })
  expect(spanOf('invoke_agent agent').attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'agent',
    'gen_ai.usage.input_tokens': 3,
    'gen_ai.usage.output_tokens': 3,
    'aworld_train.attempt': 0,
    'aworld_train.turns': 1,
    'aworld_train.tool_calls': 0,
  })
})

test('every attempt is in the trace of its rollout, the failed one with its reason', async () => {
  const environment = memoryEnvironment({
    beforeTools: async (earlier) => {
      if (earlier === 0) throw new TrainError('ENVIRONMENT_START_FAILED', 'The server did not start.')
    },
  })
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const agents = ['solver', 'critic'].map(agentWithTools)
  const both = program(async (_task, { policy, tools, signal }) => {
    await tools('solver')
    await gateway.call(policy('critic'), [{ role: 'user', content: 'Go on.' }], signal)
    return { answer: 'no', messages: [] }
  }, agents)
  await runnerOf({ environment, gateway, program: both }).run(rolloutRequest('a'), never)
  expect(tree()).toEqual([
    'rollout',
    '  invoke_agent solver, critic: ENVIRONMENT_START_FAILED',
    '  invoke_agent solver, critic',
    '  reward exact',
  ])
})

test('each invocation of a swarm has a span below what started it, with its tool calls', async () => {
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const ask = (from: Invocation, id: string, work: () => Promise<void>) =>
    from.runTool({ id, name: 'ask', arguments: '{}' }, async () => {
      await work()
      return { content: 'yes', isError: false }
    })
  const swarm = program(async (_task, { invoke, signal }) => {
    const lead = invoke('lead')
    await gateway.call(lead.policy(), [{ role: 'user', content: 'Go on.' }], signal)
    // Both are under way at once.
    const places = ['0.0.0', '0.0.1']
    const bothWork = Promise.withResolvers<void>()
    let working = 0
    await Promise.all(
      places.map((place, number) =>
        ask(lead, `call-${number}`, async () => {
          const reader = invoke('reader', { place, startedBy: [{ trajectory: lead.id, toolCall: `call-${number}` }] })
          if (++working === places.length) bothWork.resolve()
          await bothWork.promise
          await (await reader.tools()).call({ id: `read-${number}`, name: 'echo', arguments: {} }, signal)
          reader.end(true)
        }),
      ),
    )
    lead.end(true)
    invoke('lead', { place: '2', startedBy: [{ trajectory: lead.id, toolCall: null }] })
    return { answer: 'yes', messages: [] }
  }, ['lead', 'reader'].map(agentWithTools))
  await runnerOf({ gateway, program: swarm }).run(rolloutRequest('a'), never)
  const reader = ['      execute_tool ask', '        invoke_agent reader', '          execute_tool echo']
  expect(tree()).toEqual([
    'rollout',
    '  invoke_agent lead, reader',
    '    invoke_agent lead',
    ...reader,
    ...reader,
    '    invoke_agent lead',
    '  reward exact',
  ])
  const spans = exporter.getFinishedSpans()
  const idsOf = (name: string) =>
    spans
      .filter((span) => span.name === name)
      .map(({ attributes }) => [attributes['gen_ai.agent.id'], attributes['aworld_train.answered']])
      .sort()
  expect(idsOf('invoke_agent reader')).toEqual([
    ['reader:lead.0.0', true],
    ['reader:lead.0.1', true],
  ])
  // The second one was never said to have ended; it ends with the attempt.
  expect(idsOf('invoke_agent lead')).toEqual([
    ['lead', true],
    ['lead:2', false],
  ])
  const parentOf = new Map(spans.map((span) => [span.spanContext().spanId, span]))
  for (const span of spans.filter(({ name }) => name === 'execute_tool echo'))
    expect(parentOf.get(span.parentSpanContext!.spanId)!.attributes['gen_ai.agent.id']).toBe(span.attributes['gen_ai.agent.id'])
})

test('a second invocation of the only agent has a span of its own', async () => {
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const twice = program(async (_task, { invoke, signal }) => {
    const first = invoke('agent')
    await gateway.call(first.policy(), [{ role: 'user', content: 'Go on.' }], signal)
    await (await first.tools()).call({ id: 'a', name: 'echo', arguments: {} }, signal)
    const second = invoke('agent', { place: '2' })
    await (await second.tools()).call({ id: 'b', name: 'echo', arguments: {} }, signal)
    return { answer: 'yes', messages: [] }
  })
  await runnerOf({ gateway, program: twice }).run(rolloutRequest('a'), never)
  expect(tree()).toEqual([
    'rollout',
    '  invoke_agent agent',
    '    execute_tool echo',
    '    invoke_agent agent',
    '      execute_tool echo',
    '  reward exact',
  ])
})

test('a reward that throws, a tool that throws and a rollout that is cancelled say so', async () => {
  const failing = { name: 'broken', score: () => Promise.reject(new TrainError('REWARD_INVALID', 'No number.')), close: async () => {} }
  await runnerOf({ ...oneCall(async () => ({ answer: 'yes', messages: [] })), reward: failing }).run(rolloutRequest('a'), never)
  expect(tree()).toEqual(['rollout: REWARD_INVALID', '  invoke_agent agent', '  reward broken: REWARD_INVALID'])
  exporter.reset()

  const environment = memoryEnvironment({ call: () => Promise.reject(new ToolError('gone')) })
  await runnerOf({ environment }).run(rolloutRequest('b'), never)
  expect(tree()[2]).toMatch(/^ {4}execute_tool echo: /)
  exporter.reset()

  const stopping = new AbortController()
  const parts = oneCall(() => new Promise(() => stopping.abort()))
  await runnerOf(parts)
    .run(rolloutRequest('c'), stopping.signal)
    .catch(() => {})
  expect(tree()).toEqual(['rollout: ROLLOUT_CANCELLED', '  invoke_agent agent: ROLLOUT_CANCELLED'])
})
