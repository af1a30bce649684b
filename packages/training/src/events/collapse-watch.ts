import { displayPath, type RunEvent, type RunReport } from '@aworld-train/core'
import type { OwnedRunStore } from '@aworld-train/store'
import { type Collapse, CollapseFinder, type StepReward } from './collapse-finder.ts'

export interface KeptCheckpoint {
  readonly step: number
  readonly path: string
}

export interface CollapseWatchOptions {
  readonly store: Pick<OwnedRunStore, 'stepMetrics' | 'kindRewards'>
  /** The warnings of all processes of the run. */
  readonly warnings: () => RunReport['warnings']
  readonly checkpoints: () => readonly KeptCheckpoint[]
}

const code = 'POLICY_COLLAPSED'

/**
 * Passes events on, and warns at the step at which the policy has lost what it had learned, as `CollapseFinder` finds it. A resumed run
 * goes on from the steps of its store, and repeats no warning.
 */
export function watchCollapse(emit: (event: RunEvent) => void, options: CollapseWatchOptions): (event: RunEvent) => void {
  const { store, warnings, checkpoints } = options
  const finder = new CollapseFinder()
  let found = 0
  let isOpen = false

  function read(step: number, reward: number | undefined, kinds: StepReward['kinds']): void {
    const collapses = reward === undefined ? [] : finder.add({ step, reward, kinds })
    if (collapses.length === 0) return
    found += 1
    const warned = warnings().find((each) => each.code === code)?.count ?? 0
    if (found <= warned) return
    emit({ type: 'warning-raised', at: Date.now(), code, message: describe(step, collapses, bestCheckpoint(collapses)) })
  }

  /** Reads the steps that earlier processes of the run trained. */
  function open(next: number): void {
    isOpen = true
    const earlier = store.stepMetrics().filter(({ step }) => step < next)
    const kinds = earlier.length === 0 ? new Map() : Map.groupBy(store.kindRewards(), ({ step }) => step)
    for (const { step, metrics } of earlier) read(step, metrics['rewardMean'], kinds.get(step) ?? [])
  }

  /** The checkpoint whose weights earned most of what fell deepest; `null` where the weights of none earned half of what was lost. */
  function bestCheckpoint(collapses: readonly Collapse[]): KeptCheckpoint | null {
    const { kind, best, latest } = collapses.reduce((a, b) => (b.depth > a.depth ? b : a))
    let most = (best.reward + latest.reward) / 2
    let chosen: KeptCheckpoint | null = null
    for (const checkpoint of checkpoints()) {
      const earned = finder.rewardAfter(checkpoint.step, kind)
      if (earned !== null && earned >= most) [chosen, most] = [checkpoint, earned]
    }
    return chosen
  }

  return (event) => {
    emit(event)
    if (event.type !== 'step-end') return
    if (!isOpen) open(event.step)
    read(event.step, event.metrics['rewardMean'], store.kindRewards(event.step))
  }
}

function describe(step: number, collapses: readonly Collapse[], checkpoint: KeptCheckpoint | null): string {
  const number = (value: number) => String(Number(value.toPrecision(2)))
  const falls = collapses.map(
    ({ kind, best, latest }) =>
      `${kind ?? 'all tasks'} from ${number(best.reward)} in steps ${best.first} to ${best.last} to ${number(latest.reward)}`,
  )
  const from = checkpoint === null ? 'No checkpoint is from before it' : `The best checkpoint is ${displayPath(checkpoint.path)}`
  return (
    `At step ${step} the policy has lost what it had learned. The mean reward of three steps fell: ${falls.join(', ')}. ${from}. ` +
    `Stop, and begin another run${checkpoint === null ? '' : ', from there if the trainer can,'} with smaller updates: a lower training.learningRate, or training.passes 1.`
  )
}
