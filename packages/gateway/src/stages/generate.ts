import {
  type FinishReason,
  type GenerateRequest,
  type MixedVersions,
  preciseNow,
  type TokenEngine,
  TrainError,
  toTrainError,
  type WeightVersionSpan,
} from '@aworld-train/core'
import type { ActiveCall } from '../active-call.ts'

/** The sampled tokens of a call, however it ended. */
export interface Generation {
  readonly tokenIds: Int32Array
  readonly logprobs: Float32Array
  readonly weightVersions: readonly WeightVersionSpan[]
  readonly mixedVersions?: MixedVersions | undefined
  readonly finishReason: FinishReason
  readonly cachedTokens: number
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Absent if the engine handed its tokens over only at the end. */
  readonly firstTokenAt?: number | undefined
  readonly endedAt: number
  /** Why the engine failed. The tokens are those that it had handed over by then. */
  readonly error: TrainError | null
}

export interface GenerateOptions {
  readonly engine: TokenEngine
  readonly request: Omit<GenerateRequest, 'onTokens'>
  readonly call: ActiveCall
  /** How long an engine may take to give up an aborted call. */
  readonly graceMs: number
  /** Called once for each piece, in order. */
  readonly onPiece: (tokenIds: Int32Array, logprobs: Float32Array) => void
}

/** Rejects `graceMs` after the abort; never settles without one. */
function graceAfterAbort(signal: AbortSignal, graceMs: number) {
  const { promise, reject } = Promise.withResolvers<never>()
  let timer: NodeJS.Timeout | undefined
  const start = () => {
    timer = setTimeout(() => reject(signal.reason), graceMs)
  }
  signal.addEventListener('abort', start, { once: true })
  const dispose = () => {
    signal.removeEventListener('abort', start)
    clearTimeout(timer)
  }
  return { promise, dispose }
}

function finishReasonOf(call: ActiveCall, error: TrainError | null): FinishReason {
  const loss = call.lost()
  if (loss) return { unified: 'aborted', raw: loss }
  const cut = call.wasCut()
  if (cut && !error) return cut === 'stop-string' ? { unified: 'stop', raw: cut } : { unified: 'length', raw: cut }
  return { unified: 'error', raw: error?.code ?? 'unknown' }
}

/** Samples a completion. Never rejects: an abort or a failure ends it with the tokens drawn so far. */
export async function generate({ engine, request, call, graceMs, onPiece }: GenerateOptions): Promise<Generation> {
  const startedAt = preciseNow()
  let firstTokenAt: number | undefined
  const ids: number[] = []
  const values: number[] = []
  const spans: WeightVersionSpan[] = []
  let open = true
  let pieceError: unknown

  const times = () => ({ startedAt, firstTokenAt, endedAt: preciseNow() })

  const onTokens = (tokenIds: Int32Array, logprobs: Float32Array, weightVersion = engine.weightVersion()) => {
    if (!open) return
    firstTokenAt ??= preciseNow()
    if (spans.at(-1)?.version !== weightVersion) spans.push({ fromToken: ids.length, version: weightVersion })
    for (let index = 0; index < tokenIds.length; index++) {
      ids.push(tokenIds[index]!)
      values.push(logprobs[index]!)
    }
    try {
      onPiece(tokenIds, logprobs)
    } catch (cause) {
      // An error thrown here would end the engine's own loop.
      pieceError = cause
      call.cut('gateway-error')
    }
  }

  const grace = graceAfterAbort(call.signal, graceMs)
  try {
    const result = await Promise.race([engine.generate({ ...request, onTokens }, call.signal), grace.promise])
    const { tokenIds, logprobs, ...rest } = result
    if (tokenIds.length !== logprobs.length) {
      const message = `Engine "${engine.name}" returned ${tokenIds.length} ids with ${logprobs.length} logprobs; every id needs one.`
      throw new TrainError('POLICY_RESPONSE_INVALID', message)
    }
    const handedOver = ids.length
    open = false
    if (tokenIds.length > handedOver) onPiece(tokenIds.subarray(handedOver), logprobs.subarray(handedOver))
    return { tokenIds, logprobs, ...rest, ...times(), error: null }
  } catch (cause) {
    const failed = pieceError ?? (call.signal.aborted ? null : cause)
    const error = failed === null ? null : toTrainError(failed, 'POLICY_UNAVAILABLE')
    return {
      tokenIds: Int32Array.from(ids),
      logprobs: Float32Array.from(values),
      weightVersions: spans,
      finishReason: finishReasonOf(call, error),
      cachedTokens: 0,
      ...times(),
      error,
    }
  } finally {
    open = false
    grace.dispose()
  }
}
