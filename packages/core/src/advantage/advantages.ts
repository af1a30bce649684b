/**
 * How the rewards of a group become advantages.
 * - `group-relative`: (r - mean) / (std + 1e-4), std with n - 1 (GRPO, arXiv 2402.03300)
 * - `group-relative-unscaled`: r - mean (Dr. GRPO, arXiv 2503.20783)
 * - `leave-one-out`: r - mean of the others (RLOO, arXiv 2402.14740)
 * - `none`: the reward itself
 */
export type AdvantageKind = 'group-relative' | 'group-relative-unscaled' | 'leave-one-out' | 'none'

export interface GroupAdvantages {
  /** One advantage for each reward. */
  readonly advantages: number[]
  /** The reason why the group teaches nothing; `null` if it teaches. */
  readonly noGradient: 'group-of-one' | 'zero-variance-group' | null
}

/** Advantages of one group. A group of one and a group of equal rewards have 0. With `none` every group counts. */
export function groupAdvantages(rewards: readonly number[], kind: AdvantageKind): GroupAdvantages {
  const zeros = () => rewards.map(() => 0)
  if (kind === 'none') return { advantages: [...rewards], noGradient: null }
  if (rewards.length <= 1) return { advantages: zeros(), noGradient: 'group-of-one' }
  if (rewards.every((reward) => reward === rewards[0])) return { advantages: zeros(), noGradient: 'zero-variance-group' }
  return { advantages: estimators[kind](rewards), noGradient: null }
}

const estimators: Record<Exclude<AdvantageKind, 'none'>, (rewards: readonly number[]) => number[]> = {
  'group-relative': (rewards) => {
    const center = mean(rewards)
    const scale = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - center) ** 2, 0) / (rewards.length - 1)) + 1e-4
    return rewards.map((reward) => (reward - center) / scale)
  },
  'group-relative-unscaled': (rewards) => {
    const center = mean(rewards)
    return rewards.map((reward) => reward - center)
  },
  'leave-one-out': (rewards) => {
    const total = rewards.reduce((sum, reward) => sum + reward, 0)
    return rewards.map((reward) => reward - (total - reward) / (rewards.length - 1))
  },
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
