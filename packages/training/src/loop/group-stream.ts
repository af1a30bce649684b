import type { TrainingSettings } from '../config/local-config.ts'

/** A group of rollouts of one task, identified by its place in the order of drawing. */
export interface DrawnGroup {
  /** Counted from 0. Its task and the numbers of its samples depend on it alone. */
  readonly draw: number
  /** The step that it was admitted for. No earlier step can train it. */
  readonly admitted: number
  /** How often it was drawn anew because all rollouts of its step failed. */
  readonly emptied: number
  /** Number of its drawn samples: only the first ones, or all. */
  readonly samples: number
}

/** Groups of a run that are drawn and not trained by a committed step, in the order of their draws. */
export interface GroupStream {
  /** Number of groups drawn so far, which is the next draw. */
  readonly drawn: number
  readonly open: readonly DrawnGroup[]
}

export type StreamSettings = Pick<
  TrainingSettings,
  'promptsPerStep' | 'samplesPerPrompt' | 'firstSamples' | 'teachingPrompts' | 'maxPrompts' | 'maxStaleness' | 'hardStaleness'
>

/** The stream before the first step. */
export const emptyStream: GroupStream = { drawn: 0, open: [] }

/**
 * Admits groups for a step while those that are unfinished or untrained are fewer than (maxStaleness + 1) · promptsPerStep, and
 * while the steps of the run need them.
 */
export function admitGroups(stream: GroupStream, step: number, steps: number, settings: StreamSettings): GroupStream {
  const { promptsPerStep, maxStaleness } = settings
  const places = Math.min(maxStaleness + 1, steps - step + 1) * promptsPerStep
  return drawGroups(stream, Math.max(0, places - stream.open.length), step, settings)
}

/** Adds groups to the stream for a step. */
export function drawGroups({ drawn, open }: GroupStream, count: number, step: number, settings: StreamSettings): GroupStream {
  const samples = firstOf(settings)
  const admitted = Array.from({ length: count }, (_, i) => ({ draw: drawn + i, admitted: step, emptied: 0, samples }))
  return { drawn: drawn + count, open: [...open, ...admitted] }
}

const firstOf = ({ firstSamples, samplesPerPrompt }: StreamSettings) => firstSamples ?? samplesPerPrompt

/** Draws the remaining samples of a group whose first ones were not all solved. */
export function completeGroup({ drawn, open }: GroupStream, draw: number, { samplesPerPrompt }: StreamSettings): GroupStream {
  return { drawn, open: open.map((group) => (group.draw === draw ? { ...group, samples: samplesPerPrompt } : group)) }
}

/**
 * The groups that a step trains: the oldest of those that are ready. `null` while too few are ready. With `hardStaleness` also `null` while
 * one of the others would then be trained more than `maxStaleness` steps after its admission.
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

/** The state that decides which groups a filled step trains. */
export interface FillState {
  readonly step: number
  /** Number of steps of the run. */
  readonly steps: number
  isReady(group: DrawnGroup): boolean
  /** Whether the rewards of a group that is ready differ. */
  teaches(group: DrawnGroup): boolean
}

/**
 * The groups that a filled step trains. It takes the oldest ready ones until `teachingPrompts` teach or `maxPrompts` are taken, and in
 * addition all ready ones that are `maxStaleness` steps old. `null` while too few are ready. Also `null` while a group of that age is not
 * ready and the step waits for it, which it does without staleness, with `hardStaleness`, and in the last step, which leaves no group.
 */
export function fillStep(
  { open }: GroupStream,
  { step, steps, isReady, teaches }: FillState,
  settings: StreamSettings,
): DrawnGroup[] | null {
  const { maxStaleness, hardStaleness } = settings
  const isDue = ({ admitted }: DrawnGroup) => step === steps || step - admitted >= maxStaleness
  const waits = step === steps || maxStaleness === 0 || hardStaleness
  if (waits && open.some((group) => isDue(group) && !isReady(group))) return null
  const chosen: DrawnGroup[] = []
  const isFull = () => groupsToDraw(chosen, teaches, settings) === 0
  for (const group of open.filter(isReady)) if (isDue(group) || !isFull()) chosen.push(group)
  return isFull() ? chosen : null
}

/** How many more groups a step draws that already has these, all of them ready. The number depends only on their rewards. */
export function groupsToDraw(groups: readonly DrawnGroup[], teaches: FillState['teaches'], settings: StreamSettings): number {
  const missing = (settings.teachingPrompts ?? 0) - groups.filter(teaches).length
  return Math.max(0, Math.min(missing, mostPrompts(settings) - groups.length))
}

/** Most groups that a step draws. */
export const mostPrompts = ({ promptsPerStep, maxPrompts }: Pick<StreamSettings, 'promptsPerStep' | 'maxPrompts'>) =>
  maxPrompts ?? 2 * promptsPerStep

/** Whether the later steps can train every open group in time, the oldest first. */
function canWait({ open }: GroupStream, step: number, { promptsPerStep, maxStaleness }: StreamSettings): boolean {
  const admitted = open.map((group) => group.admitted).sort((a, b) => a - b)
  return admitted.every((from, index) => step + 1 + Math.floor(index / promptsPerStep) - from <= maxStaleness)
}

/** Removes groups that a step has trained from the stream. */
export function withoutGroups({ drawn, open }: GroupStream, trained: readonly DrawnGroup[]): GroupStream {
  const draws = new Set(trained.map(({ draw }) => draw))
  return { drawn, open: open.filter(({ draw }) => !draws.has(draw)) }
}

/** Draws the groups of a step anew whose rollouts all failed. */
export function redrawGroups(
  { drawn, open }: GroupStream,
  failed: readonly DrawnGroup[],
  step: number,
  settings: StreamSettings,
): GroupStream {
  const draws = new Set(failed.map(({ draw }) => draw))
  const again = (group: DrawnGroup) => ({ ...group, admitted: step, emptied: group.emptied + 1, samples: firstOf(settings) })
  return { drawn, open: open.map((group) => (draws.has(group.draw) ? again(group) : group)) }
}
