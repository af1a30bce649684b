import { styleText } from 'node:util'

/** `label ━━━━━━━━╌╌╌╌ 12/30  0:12 left`, for a terminal of `columns`. */
export function renderProgressBar({ label, done, total, startedAt, now, columns, from = 0, suffix = '' }: ProgressBarState): string {
  const fraction = total > 0 ? Math.min(1, done / total) : 0
  const width = Math.max(10, Math.min(32, columns - label.length - suffix.length - 32))
  const filled = Math.round(fraction * width)
  const bar = styleText('green', '━'.repeat(filled)) + styleText('gray', '╌'.repeat(width - filled))
  const elapsed = now - startedAt
  const left = done > from && done < total ? `${clock((elapsed / (done - from)) * (total - done))} left` : clock(elapsed)
  return `${label} ${bar} ${done}/${total}  ${left}${suffix ? `  ${suffix}` : ''}`
}

export interface ProgressBarState {
  readonly label: string
  readonly done: number
  readonly total: number
  /** Milliseconds, on the same clock as `now`. */
  readonly startedAt: number
  readonly now: number
  readonly columns: number
  /** What was done at `startedAt`; 0 by default. */
  readonly from?: number
  readonly suffix?: string
}

function clock(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
