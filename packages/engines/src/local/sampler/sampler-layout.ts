import type { Arena } from '../arena.ts'
import { gemmScratchBytes, roundUp } from '../kernels/sizes.ts'
import { attentionWidths, type ModelConfig } from '../model-config.ts'
import type { PackedLayout } from '../packed-layout.ts'

export interface SamplingOptions {
  /** Rows that hold a cache of keys and values, and can sample at once. */
  readonly rows: number
  /** Most tokens that one thread feeds in one step: one of each row that samples, and pieces of prompts. At least `rows`. */
  readonly stepTokens: number
}

/** Weights that sample: a copy of the parameters (for embedding and norms), and the packed matrices. */
export interface PublishedLayout {
  readonly parameters: number
  readonly packed: PackedLayout
}

/** Buffers of one thread's decode step. Values are float32 and rows are tokens, unless stated otherwise. */
export interface StepScratch {
  /** int32 [tokens] */
  readonly ids: number
  /** int32 [rows, 4]: position, count, offset, row. */
  readonly segments: number
  readonly residual: number
  readonly normed: number
  readonly projected: number
  readonly rotated: number
  readonly attended: number
  readonly gateUp: number
  readonly activated: number
  /** [rows, hidden]: states of the tokens after which a token is drawn. */
  readonly last: number
  /** [rows, vocabulary rounded up to 8] */
  readonly logits: number
  readonly weights: number
  readonly scores: number
  readonly result: number
  readonly gemm: number
}

export interface SamplerLayout {
  /** int32 words, see `samplerWord`. */
  readonly control: number
  /** int32 [threads, threadWords], see `threadWord`. */
  readonly threads: number
  /** int32 [maxStopIds + 1]: their number, then the ids that end a completion. */
  readonly stopIds: number
  /** [rows, rowWords], see `rowWord`. */
  readonly rows: number
  /** int32 [rows, contextLength] */
  readonly tokens: number
  /** float32 [rows, contextLength], at the position of the token. */
  readonly logprobs: number
  /** int32 [rows, contextLength]: version of the weights that drew the token. */
  readonly versions: number
  /** Caches [rows, layers, 2, kvHeads, headStep]: keys, then values. */
  readonly cache: number
  readonly cacheHeadBytes: number
  readonly cacheLayerBytes: number
  readonly cacheRowBytes: number
  /** Two buffers. One samples while the other is packed. */
  readonly published: readonly [PublishedLayout, PublishedLayout]
  /** By thread. */
  readonly scratch: readonly StepScratch[]
}

/** Words of the sampler as a whole. */
export const samplerWord = {
  /** 1 makes workers leave the decode command at the next step. */
  stop: 0,
  /** Raised by workers when a row has finished, waits, or has read its prompt. */
  events: 1,
  /** Version of the published weights, and the index of their buffer. */
  version: 2,
  buffer: 3,
} as const

/** Words of each thread, a cache line apart. */
export const threadWord = {
  /** Raised by the main thread when a row was given, cancelled or resumed. An idle worker waits on it. */
  work: 0,
  /** Number of steps done. It stands still when the worker hangs. */
  steps: 1,
  /** Number of tokens drawn; wraps. */
  sampled: 2,
} as const
export const threadWords = 16

/** Words of a row; those marked float32 are read through a float view of the same address. */
export const rowWord = {
  /** See `rowState`. The thread whose state it is owns all other words. */
  state: 0,
  thread: 1,
  promptLength: 2,
  /** Number of known tokens: prompt, then drawn ones. */
  length: 3,
  maxLength: 4,
  /** Number of leading tokens whose keys and values are in the cache. */
  cached: 5,
  /** Version of the weights that computed the cache. */
  cacheVersion: 6,
  /** Number of prompt tokens that were not computed again. */
  reused: 7,
  /** 1 means that the main thread no longer wants the row. */
  cancelled: 8,
  /** 1 makes the row wait after each token until the main thread sets `running` again. */
  stepwise: 9,
  finish: 10,
  /** float32 */
  temperature: 11,
  /** float32 */
  topP: 12,
  topK: 13,
  randomHigh: 14,
  randomLow: 15,
  /** The row from which the first `lent` positions of the cache are copied before this one starts; -1 for none. */
  lender: 16,
  lent: 17,
} as const
export const rowWords = 32

/** Number of tokens of a prompt for which it is worth waiting while another call reads them. */
export const leastAwaited = 32

export const rowState = { free: 0, assigned: 1, running: 2, waiting: 3, finished: 4 } as const

/** Reasons why a row finished. */
export const rowFinish = { stop: 1, length: 2, cancelled: 3, invalid: 4 } as const

export const maxStopIds = 63

/** Allocates the sampler's memory from the arena. `packed` are two copies of the packed weights, laid out by the caller. */
export function allocateSampler(
  arena: Arena,
  model: ModelConfig,
  { rows, stepTokens, threads, parameterBytes }: SamplingOptions & { readonly threads: number; readonly parameterBytes: number },
  packed: readonly [PackedLayout, PackedLayout],
): SamplerLayout {
  const context = model.contextLength
  const cacheHeadBytes = cacheBytes(model).head
  const { layer: cacheLayerBytes, row: cacheRowBytes } = cacheBytes(model)
  return {
    control: arena.take(64),
    threads: arena.take(threads * threadWords * 4),
    stopIds: arena.take((maxStopIds + 1) * 4),
    rows: arena.take(rows * rowWords * 4),
    tokens: arena.take(rows * context * 4),
    logprobs: arena.take(rows * context * 4),
    versions: arena.take(rows * context * 4),
    cache: arena.take(rows * cacheRowBytes),
    cacheHeadBytes,
    cacheLayerBytes,
    cacheRowBytes,
    published: [
      { parameters: arena.take(parameterBytes), packed: packed[0] },
      { parameters: arena.take(parameterBytes), packed: packed[1] },
    ],
    scratch: Array.from({ length: threads }, () => allocateStep(arena, model, { rows, stepTokens })),
  }
}

/** Bytes of the cache of one row: per head (keys or values), layer and row. */
export function cacheBytes(model: ModelConfig): { head: number; layer: number; row: number } {
  const head = roundUp(model.contextLength, 16) * model.headDim * 4
  const layer = 2 * model.kvHeads * head
  return { head, layer, row: layer * model.layers }
}

function allocateStep(arena: Arena, model: ModelConfig, { rows, stepTokens }: SamplingOptions): StepScratch {
  const { query, fused } = attentionWidths(model)
  const { hiddenSize, intermediateSize, vocabularySize, contextLength } = model
  const perToken = (width: number): number => arena.takeFloats(stepTokens * width)
  const vocabulary = roundUp(vocabularySize, 8)
  return {
    ids: arena.take(stepTokens * 4),
    segments: arena.take(rows * 16),
    residual: perToken(hiddenSize),
    normed: perToken(hiddenSize),
    projected: perToken(fused),
    rotated: perToken(fused),
    attended: perToken(query),
    gateUp: perToken(2 * intermediateSize),
    activated: perToken(intermediateSize),
    last: arena.takeFloats(rows * hiddenSize),
    logits: arena.takeFloats(rows * vocabulary),
    weights: arena.takeFloats(vocabulary),
    scores: arena.takeFloats(roundUp(contextLength, 16)),
    result: arena.take(64),
    gemm: arena.take(gemmScratchBytes()),
  }
}
