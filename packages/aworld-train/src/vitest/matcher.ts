import { type Episode, type EvaluationResult, isRecord, type Turn } from '@aworld-train/core'
import type { MatcherState } from 'vitest'
import type { EvaluationWithEpisodes } from './evaluate.ts'

/** The result of a matcher, for Vitest. */
export interface Match {
  readonly pass: boolean
  readonly message: () => string
}

/** Builds a message: the first line in the form of Vitest's own matchers, and the lines below it. */
export function explain({ utils, isNot }: MatcherState, matcher: string, lines: readonly string[]): string {
  const expected = matcher === 'toBeTrainable' ? '' : 'expected'
  return [utils.matcherHint(matcher, 'received', expected, { isNot }), '', ...lines].join('\n')
}

/** A value on one line, in the colour of what was expected or received. */
export function printOnLine({ utils }: MatcherState, kind: 'expected' | 'received', value: unknown): string {
  const color = kind === 'expected' ? utils.EXPECTED_COLOR : utils.RECEIVED_COLOR
  return color(utils.stringify(value, undefined, { min: true }))
}

export const printInterval = ([low, high]: readonly [number, number]) => `[${rounded(low)}, ${rounded(high)}]`

export const isEpisode = (value: unknown): value is Episode => isRecord(value) && 'trajectories' in value && 'stopReason' in value
export const isEvaluation = (value: unknown): value is EvaluationWithEpisodes => isReport(value) && 'episodes' in value
/** A report of `evaluate`, with a row for each rollout. */
export const isReport = (value: unknown): value is EvaluationWithEpisodes => isRecord(value) && 'results' in value && 'interval' in value
/** The result of an evaluation within a training, as in `report.before` and `report.after`. */
export const isResult = (value: unknown): value is EvaluationResult => isRecord(value) && 'interval' in value && !('results' in value)

/** The error for an argument of the wrong kind. */
export function wrongSubject(matcher: string, wanted: string, received: unknown): TypeError {
  const what = Array.isArray(received)
    ? 'a list of other things'
    : isRecord(received)
      ? `an object with ${keysOf(received)}`
      : String(received)
  return new TypeError(`${matcher} is about ${wanted}; it received ${what}.`)
}

const keysOf = (value: object) => Object.keys(value).slice(0, 5).join(', ') || 'no keys'

/** Every turn of an episode's own attempt, in the order in which they began. */
export function turnsOf({ attempt, trajectories }: Episode): Turn[] {
  const turns = trajectories.flatMap((trajectory) => trajectory.turns.filter((turn) => turn.attempt === attempt))
  return turns.sort((a, b) => a.timing.startedAt - b.timing.startedAt || a.index - b.index)
}

export const describeTurn = ({ agent, index }: Pick<Turn, 'agent' | 'index'>) => `turn ${index} of agent "${agent}"`

/** Rounds to at most three decimals. */
export const rounded = (value: number) => String(Number(value.toFixed(3)))

/** The reason why an episode has no answer; empty if it has one. */
export function describeEnd({ stopReason, error }: Episode): string[] {
  if (stopReason === 'completed') return []
  return [`The episode ended by ${stopReason}${error ? `: ${error.code}: ${error.message}` : '.'}`]
}
