import { type Message, TrainError } from '@aworld-train/core'
import { assistant, firstCall, probeTools, secondCall, toolResult, user, words } from '../probe/probe-conversations.ts'
import type { TextTokenizer } from '../tokenizer.ts'
import type { Conversation, HistoryMode, TemplateCheck, TemplateProbe } from '../types.ts'
import { turnKind } from './marks.ts'

const historyModes = ['template', 'loop', 'as-sampled'] as const satisfies readonly HistoryMode[]

export interface BranchMeasurement {
  readonly tokenizer: TextTokenizer
  readonly probe: TemplateProbe
  /** Whether the template handles reasoning. */
  readonly reasons: boolean
  readonly createConversation: (mode: HistoryMode) => Conversation
}

/**
 * For each scenario and history mode, the reasons why the request after the last sampled turn would branch;
 * `raise` if the template refuses it.
 */
export function expectedBranches(model: BranchMeasurement): TemplateCheck['branches'] {
  const usable = Object.entries(scenarios(model.probe.syntax !== null, model.reasons))
  return Object.fromEntries(
    usable.map(([name, messages]) => [
      name,
      Object.fromEntries(historyModes.map((mode) => [mode, playScenario(model, mode, messages).last])) as Record<
        HistoryMode,
        readonly string[]
      >,
    ]),
  )
}

export interface PlayedScenario {
  /** Number of model calls, including the one after the last sampled turn, and of those that began a branch. */
  readonly calls: number
  readonly branches: number
  /** Reasons why the last call branched. */
  readonly last: readonly string[]
}

/** Plays a conversation whose assistant turns are sampled and closed as the template closes them. */
export function playScenario(model: BranchMeasurement, mode: HistoryMode, scenario: readonly Message[]): PlayedScenario {
  const conversation = model.createConversation(mode)
  const tools = scenario.some(({ role, toolCalls }) => role === 'system' || toolCalls) && model.probe.syntax !== null ? probeTools : []
  const messages = model.probe.systemRole ? scenario : scenario.filter(({ role }) => role !== 'system')
  let calls = 0
  let branches = 0
  const ask = (history: readonly Message[]) => {
    const prepared = conversation.prepare({ messages: history, tools })
    calls += 1
    if (prepared.parent === null) branches += 1
    return prepared
  }
  try {
    for (const [index, message] of messages.entries()) {
      if (message.role !== 'assistant') continue
      const prepared = ask(messages.slice(0, index))
      const kind = turnKind(message)
      const closing = (kind === 'plain' ? model.probe.finalStop : null) ?? model.probe.stops[kind] ?? ''
      conversation.record(index, prepared, { tokenIds: model.tokenizer.encode(`x${closing}`), message, truncated: closing === '' })
    }
    return { last: ask(messages).branchReasons, calls, branches }
  } catch (error) {
    if (error instanceof TrainError) return { last: ['raise'], calls, branches }
    throw error
  }
}

export const scenarioMessages = {
  question: user(words.user),
  next: user(words.nextUser),
  answer: assistant(words.answer),
  call: assistant(null, { toolCalls: [firstCall] }),
  again: assistant(null, { toolCalls: [secondCall] }),
  result: toolResult(firstCall.id, words.result),
  secondResult: toolResult(secondCall.id, words.secondResult),
  thought: { reasoning: words.reasoning },
} as const

function scenarios(withCalls: boolean, withReasoning: boolean): Record<string, readonly Message[]> {
  const { question, next, answer, call, again, result, secondResult, thought } = scenarioMessages
  return {
    'answer, then user': [question, answer, next],
    'answer with a system prompt, then user': [{ role: 'system', content: words.system }, question, answer, next],
    ...(withCalls && {
      'call, then result': [question, call, result],
      'two calls, then results': [question, assistant(null, { toolCalls: [firstCall, secondCall] }), result, secondResult],
      'text and call, then result': [question, { ...call, content: words.answer }, result],
      'second call in a loop': [question, call, result, again, secondResult],
      'answer after a loop, then user': [question, call, result, answer, next],
    }),
    ...(withReasoning && { 'reasoning and answer, then user': [question, { ...answer, ...thought }, next] }),
    ...(withCalls &&
      withReasoning && {
        'reasoning and call, then result': [question, { ...call, ...thought }, result],
        'reasoning in the second step of a loop': [question, { ...call, ...thought }, result, { ...again, ...thought }, secondResult],
        'reasoning and answer after a loop, then user': [question, { ...call, ...thought }, result, { ...answer, ...thought }, next],
      }),
  }
}
