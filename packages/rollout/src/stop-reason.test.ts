import { type AgentEnd, type ErrorCode, type StopReason, TrainError, type Trajectory, type Turn } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { agentFailure, cancelled, timeLimit, toolCallLimit } from './rollout-errors.ts'
import { decideStop, type StopInput } from './stop-reason.ts'

const turn = (content: string, unified: 'stop' | 'length', endedAt: number) =>
  ({ message: { role: 'assistant', content }, finishReason: { unified, raw: unified }, timing: { startedAt: 0, endedAt } }) as Turn
const trajectories = (...turns: Turn[]): Trajectory[] => [
  { version: 2, id: 'agent', agent: 'agent', policy: 'policy', trainable: true, startedBy: [], timing: null, turns },
]
const answered = (answer: string | null, stopped?: 'turn-limit'): AgentEnd => ({
  kind: 'answered',
  answer,
  messages: [],
  ...(stopped && { stopped }),
})
const threw = (error: unknown): AgentEnd => ({ kind: 'threw', error: agentFailure(error).toRecord() })
const of = (code: ErrorCode, details?: Record<string, unknown>) => new TrainError(code, code, details && { details })

const recorded = trajectories(turn('42', 'stop', 1))
const cases: readonly [name: string, input: Partial<StopInput>, stopReason: StopReason, code?: ErrorCode][] = [
  ['an answer', { end: answered('42') }, 'completed'],
  ['no answer, but calls', { end: answered(null) }, 'completed'],
  ['an answer without calls', { end: answered('42'), trajectories: trajectories() }, 'no-model-call', 'AGENT_NO_MODEL_CALL'],
  ['an answer without calls that need not be seen', { trajectories: trajectories(), requiresModelCall: false }, 'completed'],
  [
    'an answer without calls that need not be seen, after a tool server was lost',
    { trajectories: trajectories(), requiresModelCall: false, environmentFailure: of('TOOL_SERVER_DIED').toRecord() },
    'completed',
  ],
  [
    'an answer without a whole call, as the model failed, where calls need not be seen',
    { trajectories: trajectories(), requiresModelCall: false, policyFailure: of('FROZEN_MODEL_FAILED') },
    'failed',
    'FROZEN_MODEL_FAILED',
  ],
  [
    "the agent's own limit, without calls that are seen",
    { end: answered(null, 'turn-limit'), trajectories: trajectories(), requiresModelCall: false },
    'turn-limit',
  ],
  [
    'an answer without calls, as the policy was gone',
    { end: answered('42'), trajectories: trajectories(), policyFailure: of('POLICY_UNAVAILABLE') },
    'failed',
    'POLICY_UNAVAILABLE',
  ],
  ['an answer after a failure it got over', { end: answered('42'), policyFailure: of('POLICY_UNAVAILABLE') }, 'completed'],
  ['an answer after a tool server was lost', { end: answered('42'), environmentFailure: of('TOOL_SERVER_DIED').toRecord() }, 'completed'],
  ["the agent's own limit", { end: answered(null, 'turn-limit') }, 'turn-limit'],
  [
    "the gateway's limit",
    { end: answered('42'), policyFailure: of('AGENT_LIMIT', { stopReason: 'token-limit' }) },
    'token-limit',
    'AGENT_LIMIT',
  ],
  ['a limit without a name', { end: answered('42'), policyFailure: of('AGENT_LIMIT', { stopReason: 'odd' }) }, 'turn-limit', 'AGENT_LIMIT'],
  [
    'a full context',
    { end: threw(new Error('400')), policyFailure: of('POLICY_CONTEXT_OVERFLOW') },
    'context-overflow',
    'POLICY_CONTEXT_OVERFLOW',
  ],
  ['a full context, thrown', { end: threw(of('POLICY_CONTEXT_OVERFLOW')) }, 'context-overflow', 'POLICY_CONTEXT_OVERFLOW'],
  ['out of time, then an answer', { end: answered('42'), aborted: timeLimit('a', 5).toRecord() }, 'time-limit', 'AGENT_LIMIT'],
  ['out of time, not returned', { end: { kind: 'abandoned' }, aborted: timeLimit('a', 5).toRecord() }, 'time-limit', 'AGENT_LIMIT'],
  ['out of tool calls', { end: threw(new Error('aborted')), aborted: toolCallLimit('a', 5).toRecord() }, 'tool-call-limit', 'AGENT_LIMIT'],
  ['cancelled', { end: { kind: 'abandoned' }, aborted: cancelled('a').toRecord() }, 'cancelled', 'ROLLOUT_CANCELLED'],
  [
    'an answer of an attempt that has lost its state',
    { end: answered('42'), aborted: of('ENVIRONMENT_START_FAILED').toRecord() },
    'failed',
    'ENVIRONMENT_START_FAILED',
  ],
  ['thrown', { end: threw('text') }, 'failed', 'AGENT_FAILED'],
  ['thrown for a lost policy', { end: threw(new Error('503')), policyFailure: of('POLICY_UNAVAILABLE') }, 'failed', 'POLICY_UNAVAILABLE'],
  [
    'wrapped for a lost policy',
    { end: threw(of('AGENT_FAILED')), policyFailure: of('POLICY_UNAVAILABLE') },
    'failed',
    'POLICY_UNAVAILABLE',
  ],
  [
    'thrown for a lost server',
    { end: threw(new Error('lost')), environmentFailure: of('TOOL_SERVER_DIED').toRecord() },
    'failed',
    'TOOL_SERVER_DIED',
  ],
  ['a typed error of its own', { end: threw(of('TOOL_TIMEOUT')), policyFailure: of('POLICY_UNAVAILABLE') }, 'failed', 'TOOL_TIMEOUT'],
  [
    'thrown for a cut message',
    { end: threw(new Error('length')), trajectories: trajectories(turn('4', 'length', 1)) },
    'truncated',
    'AGENT_FAILED',
  ],
  [
    'thrown after a cut message and a whole one',
    { end: threw(new Error('own')), trajectories: trajectories(turn('4', 'length', 1), turn('42', 'stop', 2)) },
    'failed',
    'AGENT_FAILED',
  ],
  [
    'thrown for a lost policy after a cut message',
    {
      end: threw(new Error('503')),
      trajectories: trajectories(turn('4', 'length', 1)),
      policyFailure: of('POLICY_UNAVAILABLE'),
    },
    'failed',
    'POLICY_UNAVAILABLE',
  ],
  ['cut in the answer', { end: answered('4'), trajectories: trajectories(turn('4', 'length', 1)) }, 'truncated'],
  [
    'cut, without an answer',
    { end: answered(null), trajectories: trajectories(turn('x', 'stop', 1), turn('4', 'length', 2)) },
    'truncated',
  ],
  [
    'cut before the answer',
    { end: answered('42'), trajectories: trajectories(turn('4', 'length', 1), turn(' 42 ', 'stop', 2)) },
    'completed',
  ],
  [
    'cut after the answer',
    { end: answered('42'), trajectories: trajectories(turn('42', 'stop', 1), turn('So,', 'length', 2)) },
    'completed',
  ],
  [
    'an answer of its own making after a cut',
    { end: answered('17'), trajectories: trajectories(turn('42', 'stop', 1), turn('So,', 'length', 2)) },
    'truncated',
  ],
]

test.each(cases)('%s', (_name, input, stopReason, code) => {
  const decision = decideStop({
    end: answered('42'),
    aborted: null,
    policyFailure: null,
    environmentFailure: null,
    invocations: [],
    trajectories: recorded,
    requiresModelCall: true,
    ...input,
  })
  expect(decision.stopReason).toBe(stopReason)
  expect(decision.error?.code).toBe(code)
})

test.each([1, 9])('which of several agents side by side ended later decides nothing (%d)', (endedAt) => {
  const [first, second] = ['a', 'b'].map((id, i) => ({
    ...trajectories(turn(`part ${id}`, i === 0 ? 'length' : 'stop', i === 0 ? endedAt : 5))[0]!,
    id,
    agent: id,
  }))
  const nothing = { aborted: null, policyFailure: null, environmentFailure: null, invocations: [], requiresModelCall: true }
  const input = { ...nothing, trajectories: [first!, second!] }
  expect(decideStop({ ...input, end: answered('{"a":"part a","b":"part b"}') }).stopReason).toBe('truncated')
  expect(decideStop({ ...input, end: answered('part b') }).stopReason).toBe('completed')
  expect(decideStop({ ...input, end: threw(new Error('Could not parse it.')) }).stopReason).toBe('truncated')
})
