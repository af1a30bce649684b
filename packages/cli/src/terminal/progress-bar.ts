import { styleText } from 'node:util'
import { textWidth } from './text-width.ts'

const widestBar = 32

/**
 * `label ━━━━━━━━╌╌╌╌ 12/30 steps  0:12 left  notes`, in at most `columns`. The bar and the later notes are left out if there is no room
 * for them.
 */
export function renderProgressBar(state: ProgressBarState): string {
  const { label, done, total, unit = '', startedAt, now, columns, from = 0, notes = [] } = state
  const elapsed = now - startedAt
  const left = done > from && done < total ? `${clock((elapsed / (done - from)) * (total - done))} left` : clock(elapsed)
  const numbers = `${done}${total > 0 ? `/${total}` : ''}${unit && ` ${unit}`}  ${left}`
  let room = columns - textWidth(`${label} ${numbers}`)
  const width = Math.min(widestBar, Math.floor(columns / 7), room - 1)
  if (width < 1) return `${label} ${numbers}`
  room -= width + 1
  const shown: string[] = []
  for (const note of notes) {
    room -= textWidth(note) + 2
    if (room < 0) break
    shown.push(note)
  }
  const filled = Math.round((total > 0 ? Math.min(1, done / total) : 0) * width)
  const bar = styleText('green', '━'.repeat(filled)) + styleText('gray', '╌'.repeat(width - filled))
  return [`${label} ${bar} ${numbers}`, ...shown].join('  ')
}

export interface ProgressBarState {
  readonly label: string
  readonly done: number
  readonly total: number
  /** Unit of the count, such as `rollouts`. */
  readonly unit?: string
  /** Milliseconds, on the same clock as `now`. */
  readonly startedAt: number
  readonly now: number
  readonly columns: number
  /** The count at `startedAt`. Default 0. */
  readonly from?: number
  /** The most important note is first. */
  readonly notes?: readonly string[]
}

function clock(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
