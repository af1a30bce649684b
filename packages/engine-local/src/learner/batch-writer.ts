import { trainedLength } from '@aworld-train/core'
import type { TrainingSample } from '@aworld-train/protocol'
import type { Views } from '../arena.ts'
import type { Layout } from '../layout.ts'

/** Consecutive rows [first, end) that fit into one command's batch. */
export interface BatchRange {
  readonly first: number
  readonly end: number
}

/** Cuts rows into commands by the layout's capacity for tokens and rows. */
export function batchRanges(lengths: readonly number[], { options }: Layout): BatchRange[] {
  const capacity = Math.max(options.batchTokens, options.model.contextLength)
  const ranges: BatchRange[] = []
  let first = 0
  let tokens = 0
  lengths.forEach((length, row) => {
    if (row > first && (tokens + length > capacity || row - first === options.batchRows)) {
      ranges.push({ first, end: row })
      first = row
      tokens = 0
    }
    tokens += length
  })
  if (first < lengths.length) ranges.push({ first, end: lengths.length })
  return ranges
}

/** Writes token ids and where each row starts. */
export function writeRows({ batch }: Layout, { i32 }: Views, rows: readonly Int32Array[]): void {
  i32[batch.header / 4] = rows.length
  let start = 0
  rows.forEach((row, index) => {
    i32[batch.rowStarts / 4 + index] = start
    i32.set(row, batch.tokens / 4 + start)
    start += row.length
  })
  i32[batch.rowStarts / 4 + rows.length] = start
}

export interface SampleRows {
  readonly samples: readonly TrainingSample[]
  /** Per sample, from `lossWeights`. */
  readonly weights: readonly number[]
  readonly references: readonly Float32Array[] | undefined
  /** Whether rollout logprobs and advantages are read. */
  readonly policy: boolean
}

/** Writes samples, each up to its last trained token, with what their tokens' loss needs. */
export function writeSamples(layout: Layout, views: Views, { samples, weights, references, policy }: SampleRows): void {
  const { batch } = layout
  const { f32 } = views
  writeRows(
    layout,
    views,
    samples.map((sample) => sample.tokenIds.subarray(0, trainedLength(sample))),
  )
  let start = 0
  samples.forEach((sample, index) => {
    const { lossMask } = sample
    const length = trainedLength(sample)
    const weight = weights[index]!
    for (let i = 0; i < length; i++) f32[batch.weights / 4 + start + i] = lossMask[i] === 1 ? weight : 0
    if (policy) {
      f32.set(sample.rolloutLogprobs.subarray(0, length), batch.rolloutLogprobs / 4 + start)
      f32.fill(sample.advantage!, batch.advantages / 4 + start, batch.advantages / 4 + start + length)
    }
    const reference = references?.[index]
    if (reference) f32.set(reference.subarray(0, length), batch.referenceLogprobs / 4 + start)
    start += length
  })
}
