import type { Message } from '@aworld-train/core'
import { words } from '../probe/probe-conversations.ts'
import type { HistoryMode } from '../types.ts'
import { type BranchMeasurement, playScenario, scenarioMessages } from './expected-branches.ts'

/** Warnings before a run about turns that the template rewrites after they were sampled; none if every call continues. */
export function historyNotes(model: BranchMeasurement, history: HistoryMode): string[] {
  const withCalls = model.probe.syntax !== null
  const measured = episodes(withCalls, model.reasons).map(({ where, messages }) => ({ where, ...playScenario(model, history, messages) }))
  const found = measured.filter(({ branches, last }) => branches > 1 && last[0] !== 'raise')
  if (found.length === 0) return []
  const places = found.map(({ where, last }) => (last.length === 0 ? where : `${where} (${last.join(', ')})`))
  const { calls, branches } = found.reduce((most, each) => (each.branches > most.branches ? each : most))
  const cost = `${calls} calls of one conversation then are ${branches} branches, each a training sample of its own`
  const remedy = history === 'as-sampled' ? '' : ' Set history to as-sampled to continue what was sampled instead.'
  return [`This template rewrites earlier turns at ${places.join('; ')}: ${cost}.${remedy}`]
}

/** Typical conversations of agents, each with one place where templates rewrite earlier turns. */
function episodes(withCalls: boolean, withReasoning: boolean): { where: string; messages: readonly Message[] }[] {
  const { question, next, answer, call, again, result, secondResult, thought } = scenarioMessages
  const kinds = withReasoning
    ? [
        { when: '', more: {} },
        { when: ' after reasoning', more: thought },
      ]
    : [{ when: '', more: {} }]
  return kinds.flatMap(({ when, more }) => {
    const reply = { ...answer, ...more }
    const third: Message = { role: 'user', content: `${words.nextUser}2` }
    return [
      { where: `each new user message${when}`, messages: [question, reply, next, reply, third] },
      ...(withCalls
        ? [{ where: `each tool result${when}`, messages: [question, { ...call, ...more }, result, { ...again, ...more }, secondResult] }]
        : []),
    ]
  })
}
