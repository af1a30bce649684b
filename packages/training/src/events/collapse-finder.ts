import { type KindReward, type RewardFall, type RewardPoint, RewardSeries } from './reward-series.ts'

export interface StepReward extends RewardPoint {
  /** Empty where only the trainer knows the rewards of its rollouts. */
  readonly kinds: readonly (KindReward & { readonly least: number; readonly greatest: number })[]
}

export interface Collapse extends RewardFall {
  /** The kind of task that fell; `null` for all tasks together. */
  readonly kind: string | null
}

interface Followed {
  readonly series: RewardSeries
  fall: RewardFall | null
  hasCollapsed: boolean
}

const follow = (deviations: number): Followed => ({ series: new RewardSeries(deviations), fall: null, hasCollapsed: false })
const depthOf = ({ fall }: Followed) => fall?.depth ?? 0

/**
 * Finds the steps at which a policy loses what it had learned.
 *
 * The rule: the mean reward of the latest three steps lies a quarter of the spread below that of the best three before them. It holds
 * for all tasks together and for each kind of task, which may be lost alone. The spread is the difference between the greatest and the
 * least reward that a rollout of the run has had: a quarter is 0.25 for rewards of 0 and 1, and 25 for rewards of 0 to 100. It is 1
 * where only the trainer knows the rewards of rollouts.
 *
 * Chance: the fall is also at least 2·σ·√(ln n), of a kind 2.5·σ·√(ln n). n is the number of steps, and σ the standard deviation of a
 * step: the root of half the mean squared change from one step to the next. Simulated runs of 45 and 200 steps that learn nothing, with
 * 1 to 16 prompts a step, are warned of in at most one case of ten. The fewer prompts a step has, the deeper a fall must be.
 *
 * Mixture: harder tasks are no collapse. Of all tasks together each kind counts as much as both times three steps have of it.
 *
 * A collapse is found once, with everything that has fallen half as far as it takes. What has come back beyond that may collapse again.
 */
export class CollapseFinder {
  readonly #all = follow(2)
  readonly #kinds = new Map<string, Followed>()
  #least = Number.POSITIVE_INFINITY
  #greatest = Number.NEGATIVE_INFINITY

  /** Takes the next step. Returns what has fallen where the step completes a collapse, the kinds before all tasks together; else nothing. */
  add({ step, reward, kinds }: StepReward): readonly Collapse[] {
    // A step whose rewards all abstained says nothing.
    if (kinds.length === 0 && this.#least <= this.#greatest) return []
    this.#all.series.add({ step, reward, kinds })
    const changed = [this.#all]
    for (const { kind, rollouts, sum, least, greatest } of kinds) {
      this.#least = Math.min(this.#least, least)
      this.#greatest = Math.max(this.#greatest, greatest)
      const followed = this.#kinds.get(kind) ?? follow(2.5)
      this.#kinds.set(kind, followed)
      followed.series.add({ step, reward: sum / rollouts, kinds: [] })
      changed.push(followed)
    }
    const spread = this.#least <= this.#greatest ? this.#greatest - this.#least : 1
    for (const followed of changed) {
      // Rewards that are all alike differ by rounding alone.
      followed.fall = spread === 0 ? null : followed.series.fall(spread / 4)
      if (depthOf(followed) < 0.5) followed.hasCollapsed = false
    }
    // A single kind is all tasks.
    const named = [...(this.#kinds.size > 1 ? this.#kinds : []), [null, this.#all] as const]
    // The mean of all tasks falls with the kinds, so that it is none of its own once a kind has fallen.
    const hasFallenKind = named.some(([kind, { hasCollapsed }]) => kind !== null && hasCollapsed)
    const isNew = named.some(([kind, each]) => depthOf(each) >= 1 && !each.hasCollapsed && !(kind === null && hasFallenKind))
    if (!isNew) return []
    const fallen = named.filter(([, each]) => depthOf(each) >= 0.5)
    for (const [, each] of fallen) each.hasCollapsed = true
    return fallen.map(([kind, { fall }]) => ({ kind, ...fall! }))
  }

  /** The mean reward of a kind, `null` for all tasks together, in up to three steps after `step`, whose weights sampled the first of them. */
  rewardAfter(step: number, kind: string | null): number | null {
    const followed = kind === null ? this.#all : this.#kinds.get(kind)
    return followed?.series.rewardAfter(step) ?? null
  }
}
