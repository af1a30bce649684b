import type { RunEvent } from '@aworld-train/core'

/**
 * Passes events on. Warns once in a run when most rollouts of a step were cut by their length: such rollouts teach the policy little more
 * than to be brief. `remedy` is a sentence that names the limit.
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
