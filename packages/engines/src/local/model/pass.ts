import type { Views } from '../arena.ts'
import type { Kernels } from '../kernels/kernels.ts'
import { type Layout, trainingScratch } from '../layout.ts'
import { attentionWidths } from '../model-config.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import type { TrainingScratch } from './scratch.ts'

/** The tools of one worker's passes: kernels, addresses and its own scratch. */
export interface PassContext {
  readonly kernels: Kernels
  readonly layout: Layout
  readonly views: Views
  readonly scratch: TrainingScratch
  readonly widths: { readonly query: number; readonly key: number; readonly fused: number }
}

export function createPassContext({ kernels, layout, views, threadIndex }: WorkerContext): PassContext {
  return { kernels, layout, views, scratch: trainingScratch(layout, threadIndex), widths: attentionWidths(layout.model) }
}

/** Whole rows of the batch that go through the model together. Tokens are indices into the batch. */
export interface MicroBatch {
  readonly firstRow: number
  readonly endRow: number
  readonly firstToken: number
  readonly tokens: number
}

/** Start of a row in the batch, in tokens. */
export function rowStart({ layout, views }: Pick<WorkerContext, 'layout' | 'views'>, row: number): number {
  return views.i32[layout.batch.rowStarts / 4 + row]!
}

/** The `index`-th pass of the batch. */
export function passOf(context: Pick<WorkerContext, 'layout' | 'views'>, index: number): MicroBatch {
  const at = context.layout.batch.passes / 4 + index
  const firstRow = context.views.i32[at]!
  const endRow = context.views.i32[at + 1]!
  const firstToken = rowStart(context, firstRow)
  return { firstRow, endRow, firstToken, tokens: rowStart(context, endRow) - firstToken }
}

export interface PassRow {
  /** The first of its own tokens, relative to the pass, and their number. */
  readonly first: number
  readonly count: number
  /** Tokens before its own, which belong to earlier rows of the pass. */
  readonly shared: number
  /** Address of the places, relative to the pass, of all its tokens (int32). */
  readonly path: number
}

/** Calls `visit` with each row of a pass, in order. */
export function forEachRow(context: PassContext, batch: MicroBatch, visit: (row: PassRow) => void): void {
  const { batch: at } = context.layout
  const { i32 } = context.views
  for (let row = batch.firstRow; row < batch.endRow; row++) {
    const start = rowStart(context, row)
    const count = rowStart(context, row + 1) - start
    const path = at.paths + i32[at.pathStarts / 4 + row]! * 4
    visit({ first: start - batch.firstToken, count, shared: i32[at.shared / 4 + row]!, path })
  }
}
