import { Arena } from './arena.ts'
import type { CommandCapacity } from './learner/fold-rows.ts'
import { allocateTraining, type TrainingScratch } from './model/scratch.ts'
import type { ModelConfig } from './model-config.ts'
import { layoutPacked, type PackedLayout } from './packed-layout.ts'
import { createParameterTable, type ParameterTable } from './parameter-table.ts'
import { allocateSampler, type SamplerLayout, type SamplingOptions } from './sampler/sampler-layout.ts'

/** Floats of one unit of reduction. Sums over gradients run in chunks of this size, in order. */
export const chunkFloats = 4_096

/** Everything that the addresses depend on. It is plain data, from which workers compute the same layout. */
export interface LayoutOptions {
  readonly model: ModelConfig
  readonly threads: number
  /** Number of gradient buffers. The bits of an update depend on this number and not on `threads`. */
  readonly shards: number
  /** Tokens of one forward and backward pass. A pass may always be as long as the context. */
  readonly microBatchTokens: number
  /** Most tokens and rows of one command. Larger batches take several commands. */
  readonly batchTokens: number
  readonly batchRows: number
  readonly sampling: SamplingOptions
  /** Whether rows of a batch share their common prefixes. Default `true`; `false` is for comparison. */
  readonly folds?: boolean | undefined
}

/** Addresses of the batch that a command works on, as `layOutRows` lays it out; per forwarded token unless stated otherwise. */
export interface BatchLayout {
  /** int32: number of passes. */
  readonly header: number
  /** int32 */
  readonly tokens: number
  /** int32, tokens + 1: the first occurrence of each token. */
  readonly occurrences: number
  /**
   * float32 per occurrence of a trained token in a sample: its weight in the loss, and the values that the loss compares. A linear loss has
   * its coefficients as advantages.
   */
  readonly weights: number
  readonly rolloutLogprobs: number
  readonly advantages: number
  readonly referenceLogprobs: number
  /** float32, written by the command. */
  readonly logprobs: number
  /** int32 per row: start of its own tokens (rows + 1), and number of tokens of earlier rows that precede them. */
  readonly rowStarts: number
  readonly shared: number
  /** int32: start of each row's path (rows + 1), and the place of each token of each row in its pass. */
  readonly pathStarts: number
  readonly paths: number
  /** int32: first row of each pass, and first pass of each shard, each with its end. */
  readonly passes: number
  readonly shardPasses: number
}

export interface Layout {
  readonly options: LayoutOptions
  readonly model: ModelConfig
  readonly table: ParameterTable
  /** Words of the pool's control block (int32). */
  readonly control: number
  readonly parameters: number
  readonly firstMoment: number
  readonly secondMoment: number
  /** Gradient buffer of shard s: `gradients + s * parameterBytes`. */
  readonly gradients: number
  /** Bytes of one parameter buffer, padded to whole chunks. */
  readonly parameterBytes: number
  readonly chunks: number
  readonly packed: PackedLayout
  /** float32 [contextLength, headDim / 2] each. */
  readonly cosines: number
  readonly sines: number
  readonly batch: BatchLayout
  readonly batchCapacity: CommandCapacity
  /** Longest pass in forwarded tokens: a micro-batch, or one row of full context. */
  readonly passTokens: number
  /** float64 settings of the running update. */
  readonly settings: number
  /** float64 [shards, shardResultDoubles]: sums of the loss and its metrics. */
  readonly shardResults: number
  /** float64 [chunks]: sums of squares of the gradient. */
  readonly chunkSums: number
  /** Scratch of thread t: `scratch + t * scratchBytes`. All commands share it, and nothing in it survives one. */
  readonly scratch: number
  readonly scratchBytes: number
  readonly sampler: SamplerLayout
  /** Pages of 64 KiB of the whole memory. */
  readonly pages: number
}

export const shardResultDoubles = 8
/** Room for tokens that rows share, so that a command holds whole groups of samples. */
const occurrencesPerToken = 4
const settingDoubles = 32
const controlWords = 64

function passTokens(options: LayoutOptions): number {
  return Math.max(options.microBatchTokens, options.model.contextLength)
}

/** Lays out all memory of the engine. It is a pure function, so every thread computes the same addresses. */
export function createLayout(options: LayoutOptions): Layout {
  const { model, threads, shards } = options
  const arena = new Arena()
  const table = createParameterTable(model)
  const chunks = Math.ceil(table.count / chunkFloats)
  const parameterBytes = chunks * chunkFloats * 4
  const control = arena.take(controlWords * 4)
  const settings = arena.takeDoubles(settingDoubles)
  const shardResults = arena.takeDoubles(shards * shardResultDoubles)
  const chunkSums = arena.takeDoubles(chunks)
  const parameters = arena.take(parameterBytes)
  const firstMoment = arena.take(parameterBytes)
  const secondMoment = arena.take(parameterBytes)
  const gradients = arena.take(parameterBytes * shards)
  const packed = layoutPacked(arena, model)
  const angles = (model.contextLength * model.headDim) / 2
  const cosines = arena.takeFloats(angles)
  const sines = arena.takeFloats(angles)
  const batchTokens = Math.max(options.batchTokens, model.contextLength)
  // Tokens that rows share are forwarded again in each of their passes, so only the occurrences bound the tokens of a command.
  const occurrences = occurrencesPerToken * batchTokens
  const batch: BatchLayout = {
    header: arena.take(64),
    tokens: arena.takeFloats(occurrences),
    occurrences: arena.takeFloats(occurrences + 1),
    weights: arena.takeFloats(occurrences),
    rolloutLogprobs: arena.takeFloats(occurrences),
    advantages: arena.takeFloats(occurrences),
    referenceLogprobs: arena.takeFloats(occurrences),
    logprobs: arena.takeFloats(occurrences),
    rowStarts: arena.takeFloats(options.batchRows + 1),
    shared: arena.takeFloats(options.batchRows),
    pathStarts: arena.takeFloats(options.batchRows + 1),
    paths: arena.takeFloats(occurrences),
    passes: arena.takeFloats(options.batchRows + 1),
    shardPasses: arena.takeFloats(shards + 1),
  }
  const scratchBytes = trainingScratchBytes(options)
  const scratch = arena.take(scratchBytes * threads)
  const published = [layoutPacked(arena, model), layoutPacked(arena, model)] as const
  const sampler = allocateSampler(arena, model, { ...options.sampling, threads, parameterBytes }, published)
  return {
    options,
    model,
    table,
    control,
    parameters,
    firstMoment,
    secondMoment,
    gradients,
    parameterBytes,
    chunks,
    packed,
    cosines,
    sines,
    batch,
    batchCapacity: { rows: options.batchRows, tokens: batchTokens, occurrences },
    passTokens: passTokens(options),
    settings,
    shardResults,
    chunkSums,
    scratch,
    scratchBytes,
    sampler,
    pages: arena.pages,
  }
}

function trainingScratchBytes(options: LayoutOptions): number {
  const arena = new Arena(0)
  allocateTraining(arena, options.model, passTokens(options))
  return arena.used
}

/** Buffers of one thread's forward and backward passes. */
export function trainingScratch(layout: Layout, threadIndex: number): TrainingScratch {
  const start = layout.scratch + threadIndex * layout.scratchBytes
  return allocateTraining(new Arena(start, start + layout.scratchBytes), layout.model, passTokens(layout.options))
}
