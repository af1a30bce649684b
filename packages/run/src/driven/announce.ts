import type { RunEvent } from '@aworld-train/protocol'

/** Says what is done now where it takes as long as the imports of a framework. It ends with whatever is said next. */
export function announce(onEvent: ((event: RunEvent) => void) | undefined, phase: string): void {
  onEvent?.({ type: 'phase-progress', at: Date.now(), phase, done: 0, total: 1, metrics: {} })
}
