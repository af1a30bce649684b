/** Rollouts of one kind of task in a step, and the sum of their rewards. */
export interface KindReward {
  readonly kind: string
  readonly rollouts: number
  readonly sum: number
}

export interface RewardPoint {
  readonly step: number
  readonly reward: number
  /** What the tasks are a mixture of; empty where they are of one kind, or their kinds are not known. */
  readonly kinds: readonly KindReward[]
}

/** The mean reward of three points that follow each other. */
export interface RewardWindow {
  readonly first: number
  readonly last: number
  readonly reward: number
}

interface MixedWindow extends RewardWindow {
  readonly rollouts: number
  readonly kinds: ReadonlyMap<string, { readonly rollouts: number; readonly mean: number }>
}

export interface RewardFall {
  readonly best: RewardWindow
  readonly latest: RewardWindow
  /** How far the latest lies below the best: 1 is as far as it takes to be a collapse. */
  readonly depth: number
}

const span = 3

/** The rewards of the steps of a run, and how far the latest three lie below the best three before them. */
export class RewardSeries {
  readonly #deviations: number
  readonly #points: RewardPoint[] = []
  readonly #windows: MixedWindow[] = []
  #squaredChanges = 0

  /** `deviations` is how many standard deviations of a point, times √(ln n), a fall among n points must be. */
  constructor(deviations: number) {
    this.#deviations = deviations
  }

  add(point: RewardPoint): void {
    const previous = this.#points.at(-1)
    if (previous) this.#squaredChanges += (point.reward - previous.reward) ** 2
    this.#points.push(point)
    if (this.#points.length >= span) this.#windows.push(toWindow(this.#points.slice(-span)))
  }

  /** The fall from the best three; `null` where nothing lies above the latest. `least` is how far it takes at least. */
  fall(least: number): RewardFall | null {
    const latest = this.#windows.at(-1)
    let best: RewardWindow | null = null
    let deepest = 0
    for (const earlier of this.#windows.slice(0, -span)) {
      // The fall within the common mixture is never greater than that of the mean.
      const fall = earlier.reward - latest!.reward > deepest ? fallOf(earlier, latest!) : 0
      if (fall > deepest) [best, deepest] = [earlier, fall]
    }
    return best && { best, latest: latest!, depth: deepest / Math.max(least, this.#chance()) }
  }

  /** The mean reward of up to three points after `step`; `null` where there is none. */
  rewardAfter(step: number): number | null {
    const after = this.#points.filter((point) => point.step > step).slice(0, span)
    return after.length === 0 ? null : mean(after)
  }

  /** How far a fall by chance may reach. The variance of a point is half the mean squared change from one to the next. */
  #chance(): number {
    const points = this.#points.length
    return this.#deviations * Math.sqrt((this.#squaredChanges / 2 / (points - 1)) * Math.log(points))
  }
}

const mean = (points: readonly RewardPoint[]) => points.reduce((sum, { reward }) => sum + reward, 0) / points.length

function toWindow(points: readonly RewardPoint[]): MixedWindow {
  // Where the kinds of one point are not known, the mixture is not known either.
  const counted = points.every(({ kinds }) => kinds.length > 0) ? points.flatMap(({ kinds }) => kinds) : []
  const sumOf = (rewards: readonly KindReward[], key: 'rollouts' | 'sum') => rewards.reduce((sum, each) => sum + each[key], 0)
  return {
    first: points[0]!.step,
    last: points.at(-1)!.step,
    reward: mean(points),
    rollouts: sumOf(counted, 'rollouts'),
    kinds: new Map(
      Array.from(
        Map.groupBy(counted, ({ kind }) => kind),
        ([kind, rewards]) => [kind, { rollouts: sumOf(rewards, 'rollouts'), mean: sumOf(rewards, 'sum') / sumOf(rewards, 'rollouts') }],
      ),
    ),
  }
}

/** The fall of the mean, or the one within the mixture that both have where that is less. */
function fallOf(best: MixedWindow, latest: MixedWindow): number {
  const fall = best.reward - latest.reward
  if (best.rollouts === 0 || latest.rollouts === 0) return fall
  let common = 0
  for (const [kind, now] of latest.kinds) {
    const before = best.kinds.get(kind)
    if (before) common += Math.min(before.rollouts / best.rollouts, now.rollouts / latest.rollouts) * (before.mean - now.mean)
  }
  return Math.min(fall, common)
}
