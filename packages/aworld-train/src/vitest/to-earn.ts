import type { MatcherState } from 'vitest'
import { describeEnd, explain, isEpisode, isReport, type Match, printInterval, wrongSubject } from './matcher.ts'

/** An exact reward, to nine digits, or a minimum. */
export type ExpectedReward = number | { readonly atLeast: number }

const tolerance = 1e-9

/** Whether an episode has a reward, or an evaluation a mean reward. One that was not scored has none, and so earns nothing. */
export function toEarn(this: MatcherState, received: unknown, expected: ExpectedReward): Match {
  if (!isEpisode(received) && !isReport(received)) throw wrongSubject('toEarn', 'an episode of runOnce or a report of evaluate', received)
  const isBound = typeof expected === 'object'
  const bound = isBound ? expected?.atLeast : expected
  if (typeof bound !== 'number' || Number.isNaN(bound)) throw new TypeError('toEarn takes a reward, or { atLeast: reward }.')
  const { reward } = received
  const reached = (earned: number) => (isBound ? earned >= bound - tolerance : Math.abs(earned - bound) <= tolerance)
  const interval = isReport(received) && received.interval ? ` ${printInterval(received.interval)}` : ''
  return {
    pass: reward !== null && reached(reward),
    message: () =>
      explain(this, 'toEarn', [
        `Expected: ${this.isNot ? 'not ' : ''}${isBound ? 'at least ' : ''}${this.utils.printExpected(bound)}`,
        `Received: ${reward === null ? 'no reward' : this.utils.printReceived(reward)}${interval}`,
        ...(isEpisode(received)
          ? [...describeEnd(received), `Answer: ${this.utils.printReceived(received.answer)}`]
          : describeFailures(received)),
      ]),
  }
}

const describeFailures = ({ failed, rollouts }: { readonly failed: number; readonly rollouts: number }) =>
  failed > 0 ? [`${failed} of ${rollouts} rollouts failed and are in no mean.`] : []
