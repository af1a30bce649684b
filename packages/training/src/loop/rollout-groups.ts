import type { RunProgress } from '@aworld-train/core'
import type { Episode, RolloutRequest } from '@aworld-train/protocol'
import {
  admitGroups,
  chooseGroups,
  type DrawnGroup,
  type GroupStream,
  redrawGroups,
  type StreamSettings,
  withoutGroups,
} from './group-stream.ts'
import type { SavedLoopState } from './loop-state.ts'
import { createRolloutClock, type DurationSum, type RolloutClock } from './rollout-clock.ts'
import type { RunRecord } from './run-record.ts'

/** A group whose rollouts have ended, with an episode for each of them. */
export interface FinishedGroup extends DrawnGroup {
  readonly episodes: readonly Episode[]
}

/** The groups of a run that are drawn and not trained, and their rollouts. */
export interface RolloutGroups {
  readonly clock: RolloutClock
  /** What the next process of the run goes on from. */
  saved(): NonNullable<SavedLoopState['groups']>
  /** Starts what the step admits, and resolves to the groups that it trains. Rejects with what ended a rollout without an episode. */
  take(step: number): Promise<readonly FinishedGroup[]>
  /** Forgets groups that a step has trained. */
  remove(groups: readonly DrawnGroup[]): void
  /** Draws the groups of a step anew, for the next process of the run. */
  redraw(groups: readonly DrawnGroup[], step: number): void
  /** Ends the rollouts that go on, and resolves when they have ended. */
  close(): Promise<void>
}

export interface RolloutGroupsOptions {
  readonly settings: StreamSettings
  /** Steps of the run. */
  readonly steps: number
  /** How many rollouts may run at once now. */
  readonly slots: () => number
  /** Where the last committed step left the stream. */
  readonly stream: GroupStream
  /** What earlier processes of the run have trained. */
  readonly trained: DurationSum | undefined
  readonly requestsOf: (groups: readonly DrawnGroup[]) => RolloutRequest[][]
  readonly record: Pick<RunRecord, 'start'>
  readonly store: Pick<RunProgress, 'getState' | 'setState'>
  readonly signal: AbortSignal
}

/** The key of the state that says which groups the step at hand trains: a process that dies in it makes the same step again. */
const chosenKey = 'groups-of-step'

interface ChosenGroups {
  readonly step: number
  readonly draws: readonly number[]
}

interface GroupRun {
  readonly episodes: Episode[]
  left: number
}

export function createRolloutGroups(options: RolloutGroupsOptions): RolloutGroups {
  const { settings, steps, requestsOf, record, store } = options
  const others = new AbortController()
  const signal = AbortSignal.any([options.signal, others.signal])
  const clock = createRolloutClock(options.slots, options.trained)
  const runs = new Map<number, GroupRun>()
  const pending = new Set<Promise<void>>()
  let { stream } = options
  let changed = Promise.withResolvers<void>()
  let failure: { readonly error: unknown } | null = null

  const isReady = ({ draw }: DrawnGroup) => runs.get(draw)?.left === 0

  /** Starts the rollouts of open groups that have none yet, in the order of their draws. */
  function startRollouts(): void {
    const waiting = stream.open.filter(({ draw }) => !runs.has(draw))
    for (const [index, requests] of requestsOf(waiting).entries()) {
      const run: GroupRun = { episodes: [], left: requests.length }
      runs.set(waiting[index]!.draw, run)
      for (const [sample, request] of requests.entries()) {
        const rollout = roll(request, run, sample).finally(() => pending.delete(rollout))
        pending.add(rollout)
      }
    }
  }

  async function roll(request: RolloutRequest, run: GroupRun, sample: number): Promise<void> {
    clock.begin()
    try {
      const episode = await record.start(request, signal)
      run.episodes[sample] = episode
      run.left--
      clock.end(episode.timing)
    } catch (error) {
      clock.end(null)
      failure ??= { error }
      others.abort(error)
    }
    changed.resolve()
  }

  function choose(step: number): DrawnGroup[] | null {
    const chosen = store.getState(chosenKey) as ChosenGroups | null | undefined
    if (chosen?.step !== step) return chooseGroups(stream, isReady, step, settings)
    const groups = stream.open.filter(({ draw }) => chosen.draws.includes(draw))
    return groups.every(isReady) ? groups : null
  }

  return {
    clock,
    saved: () => ({ stream, trained: clock.trained() }),
    async take(step) {
      options.signal.throwIfAborted()
      clock.restart()
      stream = admitGroups(stream, step, steps, settings)
      startRollouts()
      for (;;) {
        if (failure) throw failure.error
        const groups = choose(step)
        if (groups) {
          await store.setState(chosenKey, { step, draws: groups.map(({ draw }) => draw) } satisfies ChosenGroups)
          return groups.map((group) => ({ ...group, episodes: runs.get(group.draw)!.episodes }))
        }
        changed = Promise.withResolvers()
        await changed.promise
      }
    },
    remove(groups) {
      stream = withoutGroups(stream, groups)
      for (const { draw } of groups) runs.delete(draw)
    },
    redraw(groups, step) {
      stream = redrawGroups(stream, groups, step)
      for (const { draw } of groups) runs.delete(draw)
    },
    async close() {
      others.abort(options.signal.reason)
      await Promise.all(pending)
    },
  }
}
