import { type Episode, episodeCost, type RolloutRequest, type RolloutRunner, rewardCost } from '@aworld-train/core'
import { scoreGroups } from '@aworld-train/rollout'

export interface BudgetOptions {
  readonly runner: Pick<RolloutRunner, 'run' | 'runAll' | 'scoreGroup'>
  /** US dollars that all rollouts together may cost; `null` sets no limit. */
  readonly budget: number | null
  /** Most rollouts at once. */
  readonly concurrency: number
  /** Most that one rollout may cost; `null` if it has no limit. The dearest so far stands for it then. */
  readonly maxCost: number | null
  readonly signal: AbortSignal
}

/** Rollouts that start while none has ended, where nothing else says what one costs. */
const firstRollouts = 8

/**
 * Runs rollouts and resolves in their order; `null` is one that was not started, because what is spent and what runs may yet cost would pass
 * the budget. A rollout whose result the store has costs nothing again, but what it cost counts; an attempt that left no result is not counted.
 */
export async function runWithinBudget(requests: readonly RolloutRequest[], options: BudgetOptions): Promise<(Episode | null)[]> {
  const { runner, budget, concurrency, maxCost, signal } = options
  if (budget === null) return await runner.runAll(requests, signal)
  const episodes: (Episode | null)[] = requests.map(() => null)
  const waiting = requests.map((request, index) => ({ request, index }))
  let spent = 0
  let dearest = 0
  let ended = 0
  let running = 0

  const mayStart = () => {
    if (maxCost === null && ended === 0) return budget > 0 && running < firstRollouts
    return spent + (running + 1) * (maxCost ?? dearest) <= budget
  }
  const lane = async () => {
    for (let next = waiting[0]; next && mayStart(); next = waiting[0]) {
      waiting.shift()
      running += 1
      try {
        const episode = await runner.run(next.request, all)
        episodes[next.index] = episode
        const cost = episodeCost(episode) + rewardCost(episode)
        spent += cost
        dearest = Math.max(dearest, cost)
        ended += 1
      } finally {
        running -= 1
      }
      // A rollout that cost less than it might have leaves room for others.
      grow()
    }
  }
  const others = new AbortController()
  const all = AbortSignal.any([signal, others.signal])
  const lanes = new Set<Promise<void>>()
  function grow(): void {
    while (lanes.size < concurrency && waiting.length > 0 && mayStart()) {
      const started: Promise<void> = lane()
        .catch((error: unknown) => others.abort(error))
        .finally(() => lanes.delete(started))
      lanes.add(started)
    }
  }
  grow()
  while (lanes.size > 0) await Promise.all(lanes)
  if (others.signal.aborted) throw others.signal.reason
  return await scoreGroups(requests, episodes, async (members, results) => (await runner.scoreGroup?.(members, results, signal)) ?? results)
}
