import type { LossDefinition, TrainingSample } from '@aworld-train/core'
import type { Views } from '../arena.ts'
import type { Layout } from '../layout.ts'
import { cutCommands, type DistinctRow, distinctRows, type FoldedRows, layOutRows } from './fold-rows.ts'

/** The commands for a batch: its distinct rows, as many at once as the layout has room for. */
export function commandsOf(rows: readonly Int32Array[], { options, batchCapacity }: Layout): DistinctRow[][] {
  return cutCommands(distinctRows(rows, options.folds), batchCapacity)
}

/** Lays out a command's rows and writes them. Without `shards`, all passes belong to one. */
export function writeRows(
  { batch, passTokens }: Layout,
  { i32 }: Views,
  rows: readonly DistinctRow[],
  { shards = 1 }: { readonly shards?: number } = {},
): FoldedRows {
  const folded = layOutRows(rows, { shards, passTokens })
  const write = (address: number, values: ArrayLike<number>): void => i32.set(values, address / 4)
  write(batch.header, [folded.passes.length - 1])
  write(batch.rowStarts, folded.rowStarts)
  write(batch.tokens, folded.tokens)
  write(batch.shared, folded.shared)
  write(batch.pathStarts, folded.pathStarts)
  write(batch.paths, folded.paths)
  write(batch.passes, folded.passes)
  write(batch.shardPasses, folded.shardPasses)
  return folded
}

/** The data of a batch's samples that the loss needs. */
export interface SampleRows {
  readonly samples: readonly TrainingSample[]
  /** Per sample, from `lossWeights`. */
  readonly weights: readonly number[]
  readonly references: readonly Float32Array[] | undefined
  readonly loss: LossDefinition
}

/**
 * Writes a command's rows, with an occurrence of a token for each sample that trains it. Samples that share a token differ in weight,
 * advantage and logprobs, and each is clipped by itself.
 */
export function writeSamples(
  layout: Layout,
  views: Views,
  rows: readonly DistinctRow[],
  { samples, weights, references, loss }: SampleRows,
): FoldedRows {
  const { batch } = layout
  const { f32, i32 } = views
  const folded = writeRows(layout, views, rows, layout.options)
  const forEachTrained = (visit: (place: number, sample: number, position: number) => void): void => {
    for (const [row, { members }] of rows.entries()) {
      const places = folded.places[row]!
      for (const sample of members) {
        const { lossMask } = samples[sample]!
        for (let i = 0; i < places.length; i++) if (lossMask[i] === 1) visit(places[i]!, sample, i)
      }
    }
  }
  const starts = i32.subarray(batch.occurrences / 4, batch.occurrences / 4 + folded.tokens.length + 1)
  starts.fill(0)
  forEachTrained((place) => {
    starts[place + 1]!++
  })
  for (let i = 0; i < folded.tokens.length; i++) starts[i + 1]! += starts[i]!
  const next = starts.slice()
  forEachTrained((place, sample, position) => {
    const at = next[place]!++
    const { rolloutLogprobs, advantage } = samples[sample]!
    f32[batch.weights / 4 + at] = weights[sample]!
    if (loss.kind === 'ppo-clip') {
      f32[batch.rolloutLogprobs / 4 + at] = rolloutLogprobs[position]!
      f32[batch.advantages / 4 + at] = advantage!
    }
    if (loss.kind === 'linear') f32[batch.advantages / 4 + at] = loss.coefficients[sample]![position]!
    const reference = references?.[sample]
    if (reference) f32[batch.referenceLogprobs / 4 + at] = reference[position]!
  })
  return folded
}
