/** A group of rollouts of one task, by its place in the order of drawing. */
export interface DrawnGroup {
  /** From 0; its task and the numbers of its samples depend on it alone. */
  readonly draw: number
  /** The step that it was admitted for: no earlier one can train it. */
  readonly admitted: number
  /** Times that all rollouts of its step failed, so that it was drawn anew. */
  readonly emptied: number
}

/** Groups of a run that are drawn and that no committed step has trained, in the order of their draws. */
export interface GroupStream {
  /** Groups drawn so far: the next draw. */
  readonly drawn: number
  readonly open: readonly DrawnGroup[]
}

export interface StreamSettings {
  readonly promptsPerStep: number
  readonly maxStaleness: number
  readonly hardStaleness: boolean
}

/** The stream before the first step. */
export const emptyStream: GroupStream = { drawn: 0, open: [] }

/**
 * Admits groups for a step while those that are unfinished or untrained are fewer than (maxStaleness + 1) · promptsPerStep, and
 * while the steps of the run need them.
 */
export function admitGroups(
  stream: GroupStream,
  step: number,
  steps: number,
  { promptsPerStep, maxStaleness }: StreamSettings,
): GroupStream {
  const room = (maxStaleness + 1) * promptsPerStep - stream.open.length
  const count = Math.max(0, Math.min(room, steps * promptsPerStep - stream.drawn))
  const admitted = Array.from({ length: count }, (_, i) => ({ draw: stream.drawn + i, admitted: step, emptied: 0 }))
  return { drawn: stream.drawn + count, open: [...stream.open, ...admitted] }
}

/**
 * The groups that a step trains: the oldest of those that are ready. `null` while too few are, and with `hardStaleness` while one of
 * the others would then be trained more than `maxStaleness` steps after its admission.
 */
export function chooseGroups(
  stream: GroupStream,
  isReady: (group: DrawnGroup) => boolean,
  step: number,
  settings: StreamSettings,
): DrawnGroup[] | null {
  const { promptsPerStep, hardStaleness } = settings
  const chosen = stream.open.filter(isReady).slice(0, promptsPerStep)
  if (chosen.length < promptsPerStep) return null
  const isOvertaking = chosen.some((group, index) => group !== stream.open[index])
  return hardStaleness && isOvertaking && !canWait(withoutGroups(stream, chosen), step, settings) ? null : chosen
}

/** Whether the steps after this one can train every open group in time, the oldest first. */
function canWait({ open }: GroupStream, step: number, { promptsPerStep, maxStaleness }: StreamSettings): boolean {
  const admitted = open.map((group) => group.admitted).sort((a, b) => a - b)
  return admitted.every((from, index) => step + 1 + Math.floor(index / promptsPerStep) - from <= maxStaleness)
}

/** The stream without groups that a step has trained. */
export function withoutGroups({ drawn, open }: GroupStream, trained: readonly DrawnGroup[]): GroupStream {
  const draws = new Set(trained.map(({ draw }) => draw))
  return { drawn, open: open.filter(({ draw }) => !draws.has(draw)) }
}

/** The stream after a step whose rollouts all failed: its groups are drawn anew. */
export function redrawGroups({ drawn, open }: GroupStream, failed: readonly DrawnGroup[], step: number): GroupStream {
  const draws = new Set(failed.map(({ draw }) => draw))
  return { drawn, open: open.map((group) => (draws.has(group.draw) ? { ...group, admitted: step, emptied: group.emptied + 1 } : group)) }
}
