import type { ErrorCode } from '@aworld-train/protocol'
import { createHistogram, type Histogram, secondsBounds } from './histogram.ts'

/** How a call ended: answered whole, failed, left by its client, or closed with its session. */
export type CallOutcome = 'ok' | 'failed' | 'client-closed' | 'session-closed'

export interface TokenTally {
  prompt: number
  /** Of the prompt, those that the engine had in its cache. */
  cached: number
  sampled: number
  /** Asked of third parties. */
  frozenPrompt: number
  frozenCompletion: number
}

/** What is known of the calls of one dialect to one model. */
export interface CallCell {
  readonly model: string
  readonly dialect: string
  readonly duration: Histogram
  readonly firstToken: Histogram
  readonly queue: Histogram
  readonly tokens: TokenTally
  /** US dollars spent on third parties. */
  cost: number
  readonly ends: Map<string, { readonly outcome: CallOutcome; readonly code: ErrorCode | ''; count: number }>
}

/** One cell for each pair of a model of the configuration and a dialect of ours: never more. */
export interface CallMetrics {
  cell(model: string, dialect: string): CallCell
  cells(): Iterable<CallCell>
}

export function countEnd({ ends }: CallCell, outcome: CallOutcome, code: ErrorCode | ''): void {
  const key = `${outcome} ${code}`
  const end = ends.get(key)
  if (end) end.count++
  else ends.set(key, { outcome, code, count: 1 })
}

export function createCallMetrics(): CallMetrics {
  const cells = new Map<string, CallCell>()
  return {
    cell(model, dialect) {
      const key = `${model} ${dialect}`
      let cell = cells.get(key)
      if (!cell) {
        cell = {
          model,
          dialect,
          duration: createHistogram(secondsBounds),
          firstToken: createHistogram(secondsBounds),
          queue: createHistogram(secondsBounds),
          tokens: { prompt: 0, cached: 0, sampled: 0, frozenPrompt: 0, frozenCompletion: 0 },
          cost: 0,
          ends: new Map(),
        }
        cells.set(key, cell)
      }
      return cell
    },
    cells: () => cells.values(),
  }
}
