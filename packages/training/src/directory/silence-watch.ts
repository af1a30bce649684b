import type { InProcessRolloutRunner } from '@aworld-train/rollout'

/** Time without a result until the first warning. Each further warning takes twice as long as the one before. */
const patienceMs = 60_000

const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`

/**
 * Returns a function that warns if rollouts wait or run and none has ended for a minute. The warning names the one that has run longest.
 */
export function createSilenceWatch(
  runner: Pick<InProcessRolloutRunner, 'counts' | 'slots' | 'oldest'>,
  say: (message: string) => void,
  now: () => number = () => performance.now(),
): () => void {
  let ended = -1
  let since = now()
  let dueMs = patienceMs
  return () => {
    const { queued, running, finished } = runner.counts()
    if (finished !== ended || queued + running === 0) {
      ended = finished
      since = now()
      dueMs = patienceMs
      return
    }
    const silentMs = now() - since
    if (silentMs < dueMs) return
    dueMs = 2 * silentMs
    const oldest = runner.oldest()
    if (oldest) {
      const { key, attempt, worker, runningMs, call } = oldest
      const where = worker === null ? '' : ` on worker "${worker}"`
      const doing = call ? `in its tool "${call.tool}" for ${seconds(call.openMs)}` : 'in no tool: its model or its own code is waited for'
      const remedy = 'limits.timeoutMs says how long an attempt may take.'
      say(
        `No rollout has ended for ${seconds(silentMs)}: ${running} run, ${queued} wait. "${key}", attempt ${attempt}, has run longest, ${seconds(runningMs)}${where}, ${doing}. ${remedy}`,
      )
    } else if (runner.slots() === 0)
      say(
        `No worker is connected, and ${queued} rollouts have waited for ${seconds(silentMs)}: look at what its launcher printed, and at what a worker prints, which says why it cannot connect.`,
      )
  }
}
