import { type Episode, type RolloutRequest, type RunEvent, type RunProgress, roleReward } from '@aworld-train/core'
import type { TrainingSettings } from '../config/local-config.ts'
import {
  admitGroups,
  chooseGroups,
  completeGroup,
  type DrawnGroup,
  drawGroups,
  emptyStream,
  fillStep,
  type GroupStream,
  groupsToDraw,
  redrawGroups,
  type StreamSettings,
  withoutGroups,
} from './group-stream.ts'
import { createRolloutClock, type DurationSum, type RolloutClock } from './rollout-clock.ts'
import type { RunRecord } from './run-record.ts'

/** A group whose rollouts have ended, with an episode for each of them. */
export interface FinishedGroup extends DrawnGroup {
  readonly episodes: readonly Episode[]
}

/** The groups of a run that are drawn and not trained, and their rollouts. */
export interface RolloutGroups {
  readonly clock: RolloutClock
  /** Starts what the step admits, and resolves to the groups that it trains. Rejects with what ended a rollout without an episode. */
  take(step: number): Promise<readonly FinishedGroup[]>
  /** Groups that the step at hand leaves to later ones. */
  left(): readonly DrawnGroup[]
  /** Draws the groups of the step at hand anew, for the next process of the run. */
  redraw(): Promise<void>
  /** Ends the rollouts that go on, and resolves when they have ended. */
  close(): Promise<void>
}

export interface RolloutGroupsOptions {
  readonly settings: StreamSettings & Pick<TrainingSettings, 'solvedReward' | 'ownReward'>
  /** Steps of the run. */
  readonly steps: number
  /** How many rollouts may run at once now. */
  readonly slots: () => number
  /** What earlier processes of the run have trained. */
  readonly trained: DurationSum | undefined
  readonly requestsOf: (groups: readonly DrawnGroup[]) => RolloutRequest[][]
  readonly record: Pick<RunRecord, 'start' | 'scoreGroup' | 'isOfEarlierProcess'>
  readonly store: Pick<RunProgress, 'getState' | 'setState'>
  /** Whether a group of these episodes is trained with a gradient. */
  readonly isTeaching: (episodes: readonly Episode[]) => boolean
  readonly onEvent: (event: RunEvent) => void
  readonly signal: AbortSignal
}

/** The key of the state that a process which dies in a step makes the same step from. */
const stepKey = 'groups-of-step'

interface GroupsOfStep {
  readonly step: number
  /** With the groups that the step trains. */
  readonly stream: GroupStream
  /** The groups that the step trains; `null` until they are chosen. */
  readonly chosen: readonly DrawnGroup[] | null
}

interface GroupRun {
  readonly requests: readonly RolloutRequest[]
  episodes: Episode[]
  /** How many of the requests were started, and how many have ended. */
  started: number
  ended: number
  /** Of a group that has ended, once it was asked for. */
  teaches?: boolean
}

export function createRolloutGroups(options: RolloutGroupsOptions): RolloutGroups {
  const { settings, steps, requestsOf, record, store } = options
  const others = new AbortController()
  const signal = AbortSignal.any([options.signal, others.signal])
  const clock = createRolloutClock(options.slots, options.trained)
  const runs = new Map<number, GroupRun>()
  const pending = new Set<Promise<void>>()
  let current = (store.getState(stepKey) as GroupsOfStep | null | undefined) ?? { step: 0, stream: emptyStream, chosen: [] }
  let changed = Promise.withResolvers<void>()
  let failure: { readonly error: unknown } | null = null

  const isReady = ({ draw, samples }: DrawnGroup) => runs.get(draw)?.ended === samples
  const teaches = ({ draw }: DrawnGroup) => {
    const run = runs.get(draw)!
    run.teaches ??= options.isTeaching(run.episodes)
    return run.teaches
  }
  const choose = (step: number) =>
    settings.teachingPrompts === null
      ? chooseGroups(current.stream, isReady, step, settings)
      : fillStep(current.stream, { step, steps, isReady, teaches }, settings)
  const change = (changes: Partial<GroupsOfStep>) => {
    current = { ...current, ...changes }
  }
  const save = () => store.setState(stepKey, current)

  /** Starts the rollouts of open groups that are drawn and not started, in the order of their draws. */
  function startRollouts(): void {
    const unknown = current.stream.open.filter(({ draw }) => !runs.has(draw))
    for (const [index, requests] of requestsOf(unknown).entries())
      runs.set(unknown[index]!.draw, { requests, episodes: [], started: 0, ended: 0 })
    for (const { draw, samples } of current.stream.open) {
      const run = runs.get(draw)!
      while (run.started < samples) {
        const rollout = roll(draw, run, run.started++).finally(() => pending.delete(rollout))
        pending.add(rollout)
      }
    }
  }

  async function roll(draw: number, run: GroupRun, sample: number): Promise<void> {
    clock.begin()
    const episode = await record.start(run.requests[sample]!, signal).catch(fail)
    clock.end(episode?.timing ?? null)
    if (episode) await endRollout(draw, run, sample, episode).catch(fail)
    changed.resolve()
  }

  async function endRollout(draw: number, run: GroupRun, sample: number, episode: Episode): Promise<void> {
    run.episodes[sample] = episode
    const isLast = run.ended + 1 === run.started && !failure
    // The group is ready when it has its values.
    if (isLast) run.episodes = [...(await record.scoreGroup(run.requests.slice(0, run.started), run.episodes, signal))]
    run.ended++
    if (isLast) await endWave(draw, run)
  }

  function fail(error: unknown): undefined {
    failure ??= { error }
    others.abort(error)
  }

  /** Starts the rest of a group unless its first samples are all solved: a function of their rewards, whichever ended first. */
  async function endWave(draw: number, { requests, episodes }: GroupRun): Promise<void> {
    const isSolved = episodes.every((episode) => leastReward(episode, settings.ownReward) >= settings.solvedReward)
    if (episodes.length < requests.length && !isSolved) {
      change({ stream: completeGroup(current.stream, draw, settings) })
      await save()
      signal.throwIfAborted()
      return startRollouts()
    }
    if (episodes.every(({ rollout }) => record.isOfEarlierProcess(rollout))) return
    const { group, task } = requests[0]!
    const why = episodes.length < requests.length ? 'solved' : 'full'
    options.onEvent({ type: 'group-end', at: Date.now(), group, taskId: task.id, why, rewards: episodes.map(({ reward }) => reward) })
  }

  return {
    clock,
    left: () => withoutGroups(current.stream, current.chosen ?? []).open,
    async take(step) {
      options.signal.throwIfAborted()
      clock.restart()
      if (current.step < step) {
        for (const { draw } of current.chosen ?? []) runs.delete(draw)
        const untrained = withoutGroups(current.stream, current.chosen ?? [])
        current = { step, stream: admitGroups(untrained, step, steps, settings), chosen: null }
      }
      startRollouts()
      for (;;) {
        if (failure) throw failure.error
        const chosen = current.chosen ?? choose(step)
        if (chosen?.every(isReady)) {
          change({ chosen })
          await save()
          return chosen.map((group) => ({ ...group, episodes: runs.get(group.draw)!.episodes }))
        }
        const { open } = current.stream
        const missing = !chosen && open.every(isReady) ? groupsToDraw(open, teaches, settings) : 0
        if (missing > 0) {
          change({ stream: drawGroups(current.stream, missing, step, settings) })
          await save()
          startRollouts()
        } else {
          changed = Promise.withResolvers()
          await changed.promise
        }
      }
    },
    async redraw() {
      const { step, stream, chosen } = current
      for (const { draw } of chosen ?? []) runs.delete(draw)
      change({ stream: redrawGroups(stream, chosen ?? [], step, settings), chosen: null })
      await save()
    },
    async close() {
      others.abort(options.signal.reason)
      await Promise.all(pending)
    },
  }
}

/** What the agent of a rollout that is rewarded least is trained on; without a reward, less than anything. */
function leastReward(episode: Episode, ownReward: number): number {
  if (episode.reward === null) return Number.NEGATIVE_INFINITY
  const agents = Object.keys(episode.agentRewards ?? {})
  return Math.min(episode.reward, ...agents.map((agent) => roleReward(episode, agent, ownReward) ?? Number.POSITIVE_INFINITY))
}
