import type { RunEvent } from '@aworld-train/protocol'

/**
 * Hands events on, and says once in a run when most rollouts of a step were cut by length: they teach to be brief, and little
 * else. Who trains names the limit in `remedy`, a sentence.
 */
export function watchTruncation(emit: (event: RunEvent) => void, remedy: string): (event: RunEvent) => void {
  const ended = { rollouts: 0, truncated: 0 }
  let isReported = false
  return (event) => {
    emit(event)
    if (event.type === 'rollout-end' && event.split === 'train') {
      ended.rollouts += 1
      if (event.stopReason === 'truncated') ended.truncated += 1
    }
    if (event.type !== 'step-end') return
    const { rollouts, truncated } = ended
    Object.assign(ended, { rollouts: 0, truncated: 0 })
    if (isReported || truncated * 2 <= rollouts) return
    isReported = true
    const message = `${truncated} of ${rollouts} rollouts of step ${event.step} were cut by length before their answer was complete, so there is little to learn from their rewards. ${remedy}`
    emit({ type: 'warning-raised', at: Date.now(), code: 'ROLLOUTS_TRUNCATED', message })
  }
}
