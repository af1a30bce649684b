import {
  type AttemptRow,
  type Episode,
  type ErrorCode,
  type ErrorRecord,
  errorCatalogue,
  type InvocationTrace,
  invocationTree,
  type RolloutRow,
  type RolloutTrace,
  type StepSample,
  type TaskSummary,
  type Trajectory,
  type Turn,
  type TurnTrace,
} from '@aworld-train/core'
import type { TokenTexts } from './token-texts.ts'
import { vocabulariesOf } from './vocabularies.ts'

/** Inputs of a trace. */
export interface TraceParts {
  readonly row: RolloutRow
  readonly attempts: readonly AttemptRow[]
  readonly task: TaskSummary | null
  /** `null` while the rollout runs. */
  readonly episode: Episode | null
  /** Those of the episode if there is one. */
  readonly trajectories: readonly Omit<Trajectory, 'version'>[]
  readonly samples: readonly StepSample[]
  /** The texts of a policy's tokens. */
  readonly texts: (policy: string) => TokenTexts | null
}

/** Rounds to microseconds, which are finer than anything shown. */
const exact = (ms: number) => Number(ms.toFixed(3))
/** Rounds a logprob to the digits that are shown or visible in a colour. */
const short = (value: number) => Number(value.toPrecision(5))

/** The remedy for an error; `null` for one that is not in the catalogue. */
export const remedyOf = ({ code }: ErrorRecord): string | null => (code in errorCatalogue ? errorCatalogue[code as ErrorCode].remedy : null)

/** A rollout as a dashboard shows it. Each turn has the tokens after those of its parent. */
export function toTrace({ row, attempts, task, episode, trajectories, samples, texts }: TraceParts): RolloutTrace {
  const invocations = invocationTree(trajectories).map(({ invocation, depth }): InvocationTrace => {
    const { id, agent, policy, trainable, startedBy, timing, turns } = invocation
    const own = samples.filter((sample) => sample.trajectory === id)
    const trainer = trainerLogprobs(turns, own)
    const byIndex = new Map(turns.map((turn) => [turn.index, turn]))
    const traced = turns.map((turn) => toTurn(turn, byIndex, own, trainer.get(turn.index) ?? null, texts(policy)))
    return { id, agent, policy, trainable, depth, startedBy, timing, turns: traced }
  })
  const error = episode?.error ?? row.error
  return {
    row,
    attempts,
    task,
    invocations,
    toolCalls: episode?.toolCalls ?? [],
    scores: episode?.scores ?? {},
    error,
    remedy: error && remedyOf(error),
    vocabularies: vocabulariesOf(invocations, (policy, id) => texts(policy)?.text(id)),
  }
}

function toTurn(
  turn: Turn,
  turns: ReadonlyMap<number, Turn>,
  samples: readonly StepSample[],
  trainer: readonly number[] | null,
  texts: TokenTexts | null,
): TurnTrace {
  const parent = turn.parent === null ? null : turns.get(turn.parent)
  const shared = parent ? parent.promptTokenIds.length + parent.completionTokenIds.length : 0
  const promptIds = [...turn.promptTokenIds.slice(shared)]
  const sample = samples.find((each) => each.turns.includes(turn.index))
  return {
    index: turn.index,
    parent: turn.parent,
    branchReasons: turn.branchReasons,
    startedAt: exact(turn.timing.startedAt),
    endedAt: exact(turn.timing.endedAt),
    finishReason: turn.finishReason,
    weightVersions: turn.weightVersions,
    cachedTokens: turn.usage.cachedTokens,
    messagesDelta: turn.messagesDelta,
    message: turn.message,
    model: turn.model ?? null,
    cost: turn.cost ?? null,
    promptIds,
    promptOrigins: texts ? texts.origins(promptIds, turn.messagesDelta) : promptIds.map(() => 'template' as const),
    completionIds: [...turn.completionTokenIds],
    logprobs: Array.from(turn.rolloutLogprobs, short),
    trainerLogprobs: trainer,
    isTrained: sample !== undefined && sample.reason === null,
    advantage: sample?.advantage ?? null,
    reason: sample?.reason ?? null,
    unparsed: turn.unparsed ?? [],
  }
}

/** Cuts the logprobs of each sample, which are in the order of its turns, into these turns. */
function trainerLogprobs(turns: readonly Turn[], samples: readonly StepSample[]): Map<number, number[]> {
  const lengths = new Map(turns.map((turn) => [turn.index, turn.completionTokenIds.length]))
  const cut = new Map<number, number[]>()
  for (const { turns: indices, trainerLogprobs: values } of samples) {
    if (!values || indices.reduce((sum, index) => sum + (lengths.get(index) ?? 0), 0) !== values.length) continue
    let start = 0
    for (const index of indices) {
      const end = start + lengths.get(index)!
      cut.set(index, Array.from(values.subarray(start, end), short))
      start = end
    }
  }
  return cut
}
