import type { LogprobKind, Turn, WeightVersionSpan } from '@aworld-train/protocol'
import { recordedFields } from '../stages/recorded-fields.ts'
import type { OpenedRecord, ReadTurn } from './recorder-protocol.ts'

/** What a turn says that is not in its answer. */
export interface TurnFrame {
  readonly record: Pick<OpenedRecord, 'agent' | 'attempt' | 'model'>
  readonly index: number
  readonly logprobs: LogprobKind
  /** JSON. */
  readonly sampling: string
  readonly startedAt: number
  readonly endedAt: number
  readonly lowestVersion: number
  readonly highestVersion: number
  readonly abandoned: boolean
}

/** Which weights sampled what: the engine's own word, else one span; where an update fell into the call, between which. */
function versions(
  reported: readonly WeightVersionSpan[] | undefined,
  lowest: number,
  highest: number,
): Pick<Turn, 'weightVersions' | 'mixedVersions'> {
  if (reported && reported.length > 0) return { weightVersions: [...reported] }
  const weightVersions = [{ fromToken: 0, version: lowest }]
  return lowest === highest ? { weightVersions } : { weightVersions, mixedVersions: { lowest, highest } }
}

/** A turn without its token arrays, as JSON. */
export function turnBody(frame: TurnFrame, { completion, parent, branchReason, messagesDelta, unusedFields }: ReadTurn): string {
  const { record, index, logprobs, sampling, startedAt, endedAt, lowestVersion, highestVersion, abandoned } = frame
  const { message, finishReason, usage } = completion
  const turn: Omit<Turn, 'promptTokenIds' | 'completionTokenIds' | 'rolloutLogprobs' | 'sampling'> = {
    version: 1,
    index,
    agent: record.agent,
    attempt: record.attempt,
    parent,
    branchReasons: branchReason ? [branchReason] : [],
    ...versions(completion.weightVersions, lowestVersion, highestVersion),
    finishReason,
    delivered: abandoned ? 'abandoned' : 'pending',
    messagesDelta: [...messagesDelta],
    message,
    toolCalls: message.toolCalls ?? [],
    usage,
    timing: { startedAt, endedAt },
    capture: { tokens: 'engine-reported', logprobs },
    ...(record.model !== undefined && { model: record.model }),
    ...recordedFields(unusedFields),
  }
  return `${JSON.stringify(turn).slice(0, -1)},"sampling":${sampling}}`
}
