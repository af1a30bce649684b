import type { Episode } from '@aworld-train/core'
import type { MatcherState } from 'vitest'
import { describeTurn, explain, isEpisode, isEvaluation, type Match, turnsOf, wrongSubject } from './matcher.ts'

/** Upper bounds of an episode. A missing bound is no limit. */
export interface EpisodeBounds {
  /** Model calls, over all agents. */
  readonly turns?: number
  /** Sampled tokens. */
  readonly tokens?: number
  /** Tool calls that were carried out. */
  readonly toolCalls?: number
  /** Wall time without queueing. */
  readonly ms?: number
}

const measures: { readonly [Name in keyof EpisodeBounds]-?: (episode: Episode) => number } = {
  turns: (episode) => turnsOf(episode).length,
  tokens: (episode) => turnsOf(episode).reduce((sum, turn) => sum + turn.completionTokenIds.length, 0),
  toolCalls: ({ toolCalls }) => toolCalls.length,
  ms: ({ timing }) => Math.ceil(timing.endedAt - timing.startedAt),
}

/** Whether an episode, or every episode of an evaluation, stays within the bounds. */
export function toStayWithin(this: MatcherState, received: unknown, bounds: EpisodeBounds): Match {
  const episodes = isEvaluation(received) ? received.episodes : isEpisode(received) ? [received] : null
  if (!episodes) throw wrongSubject('toStayWithin', 'an episode of runOnce or a report of evaluate', received)
  const names = Object.keys(bounds) as (keyof EpisodeBounds)[]
  const unread = names.find((name) => !(name in measures) || typeof bounds[name] !== 'number')
  if (unread !== undefined || names.length === 0)
    throw new TypeError(
      `toStayWithin takes numbers for ${Object.keys(measures).join(', ')}${unread === undefined ? '' : `; "${unread}" is none of them`}.`,
    )
  const broken = episodes.flatMap((episode) =>
    names.flatMap((name) => (measures[name](episode) > (bounds[name] as number) ? [{ episode, name, used: measures[name](episode) }] : [])),
  )
  const print = (name: string, value: number | string) => `  ${name}: ${value}`
  const lines = () => {
    if (broken.length === 0)
      return ['Expected: more than', ...names.map((name) => print(name, bounds[name] as number)), 'Received: no episode takes more']
    return broken.flatMap(({ episode, name, used }) => [
      `Expected: at most ${this.utils.printExpected(bounds[name])} ${name}`,
      `Received: ${this.utils.printReceived(used)} ${name} in rollout "${episode.rollout}"${crossing(episode, name, bounds[name] as number)}`,
    ])
  }
  return { pass: broken.length === 0, message: () => explain(this, 'toStayWithin', lines()) }
}

/** Describes a bound that an episode exceeded. */
function crossing(episode: Episode, name: keyof EpisodeBounds, bound: number): string {
  if (name === 'toolCalls') {
    const call = episode.toolCalls[bound]
    return call
      ? `; the first too many is ${call.name}(${call.arguments})${call.turn === null ? '' : ` in turn ${call.turn} of agent "${call.agent}"`}`
      : ''
  }
  let used = 0
  for (const turn of turnsOf(episode)) {
    used = name === 'ms' ? turn.timing.endedAt - episode.timing.startedAt : used + (name === 'turns' ? 1 : turn.completionTokenIds.length)
    if (used > bound) return `; ${describeTurn(turn)} went beyond`
  }
  return ''
}
