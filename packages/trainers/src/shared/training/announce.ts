import type { RunEvent } from '@aworld-train/core'

/** Announces a step that takes as long as the imports of a framework. The next announcement ends it. */
export function announce(onEvent: ((event: RunEvent) => void) | undefined, phase: string): void {
  onEvent?.({ type: 'phase-progress', at: Date.now(), phase, done: 0, total: 1, metrics: {} })
}
