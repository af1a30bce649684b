import type { Episode } from '@aworld-train/core'
import type { MatcherState } from 'vitest'
import { describeEnd, describeTurn, explain, isEpisode, type Match, printOnLine, turnsOf, wrongSubject } from './matcher.ts'

/** A tool call and its caller. */
interface Call {
  readonly name: string
  /** Parsed arguments, or the text itself if it is no JSON. */
  readonly arguments: unknown
  readonly by: string
}

/**
 * Whether the model of an episode asked for a tool, or the agent called it by itself, with arguments equal to `expected` if they are given.
 */
export function toCall(this: MatcherState, received: unknown, name: string, ...expected: readonly unknown[]): Match {
  if (!isEpisode(received)) throw wrongSubject('toCall', 'an episode of runOnce', received)
  const calls = callsOf(received)
  const matches = (call: Call) =>
    call.name === name && (expected.length === 0 || this.equals(call.arguments, expected[0], [...this.customTesters]))
  const found = calls.find(matches)
  const print = (call: Call) => `  ${call.name}(${printOnLine(this, 'received', call.arguments)}) in ${call.by}`
  return {
    pass: found !== undefined,
    message: () =>
      explain(this, 'toCall', [
        `Expected: ${this.isNot ? 'no call of ' : ''}${name}(${expected.length > 0 ? printOnLine(this, 'expected', expected[0]) : ''})`,
        ...(calls.length === 0
          ? ['Received: no tool call', `Answer: ${this.utils.printReceived(received.answer)}`]
          : ['Received:', ...calls.map(print)]),
        ...describeEnd(received),
      ]),
  }
}

function callsOf(episode: Episode): Call[] {
  const byModel = turnsOf(episode).flatMap((turn) =>
    turn.toolCalls.map(({ name, arguments: text }) => ({ name, arguments: parsed(text), by: describeTurn(turn) })),
  )
  const byAgent = episode.toolCalls.filter(({ turn }) => turn === null)
  return [
    ...byModel,
    ...byAgent.map(({ name, arguments: text, agent }) => ({ name, arguments: parsed(text), by: `agent "${agent}", without a turn` })),
  ]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
