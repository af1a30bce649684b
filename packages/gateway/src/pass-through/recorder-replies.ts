import type { TurnBatchReply } from '@aworld-train/core'
import { toTrainError } from '@aworld-train/protocol'
import type { GrowingBytes } from './growing-bytes.ts'
import type { LogPort } from './log-port.ts'
import { branchReasons, type ReadTurn, type RecordReplies } from './recorder-protocol.ts'

/** A turn as it is answered and logged. */
export interface WrittenTurn {
  readonly call: number
  readonly record: number
  readonly index: number
  readonly read: ReadTurn
  /** The turn without its token arrays, as JSON. */
  readonly body: string
  readonly log: LogPort | null
}

type Problem = RecordReplies['errors'][number]

/** What one batch is answered with, as it grows. */
export interface Replies {
  add(turn: WrittenTurn): void
  fail(call: number, cause: unknown): void
  /** Nothing more is added: what was lies in memory of its own. The rest of the answer is known when its turns are logged. */
  close(): (failures: ReadonlyMap<LogPort, TurnBatchReply['failures']>) => Omit<RecordReplies, 'memory'>
}

/** What the turns of a batch are written into, one batch after another. */
export interface ReplyMemory {
  readonly bodies: GrowingBytes
  readonly tokens: GrowingBytes
}

export function createReplies({ bodies, tokens }: ReplyMemory): Replies {
  const fields: number[] = []
  const logged: { readonly call: number; readonly log: LogPort; readonly position: number }[] = []
  const errors: Problem[] = []

  return {
    add({ call, record, index, read, body, log }) {
      const { completion, parent, prefixTokens, branchReason } = read
      const { promptTokenIds, completionTokenIds, rolloutLogprobs, usage, finishReason } = completion
      const suffix = promptTokenIds.subarray(prefixTokens)
      const bodyFrom = bodies.length
      const tokensFrom = tokens.length
      const bodyBytes = bodies.addText(body)
      tokens.add(suffix)
      tokens.add(completionTokenIds)
      tokens.add(rolloutLogprobs)
      fields.push(
        call,
        index,
        parent ?? -1,
        branchReasons.indexOf(branchReason),
        prefixTokens,
        suffix.length,
        completionTokenIds.length,
        usage.cachedTokens,
        finishReason.unified === 'length' ? 1 : 0,
        bodyBytes,
      )
      if (!log) return
      const position = log.add({
        record,
        index,
        parent,
        prefixTokens,
        suffixTokens: suffix.length,
        completionTokens: completionTokenIds.length,
        body: bodies.slice(bodyFrom, bodies.length),
        tokens: tokens.slice(tokensFrom, tokens.length),
      })
      logged.push({ call, log, position })
    },
    fail(call, cause) {
      const { code, message } = toTrainError(cause, 'POLICY_RESPONSE_INVALID')
      errors.push({ call, code, message, logged: false })
    },
    close() {
      const written = { turns: Int32Array.from(fields), bodies: bodies.take(), tokens: new Int32Array(tokens.take().buffer), errors }
      return (failures) => {
        for (const { call, log, position } of logged) {
          const failure = failures.get(log)?.find(({ turn }) => turn === position)
          if (failure) errors.push({ call, code: failure.code, message: failure.message, logged: true })
        }
        return written
      }
    },
  }
}
