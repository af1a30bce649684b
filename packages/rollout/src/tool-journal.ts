import { type ExecutedToolCall, errorMessage, orAborted, preciseNow, type ToolResult, type TrainError } from '@aworld-train/core'
import type { InvocationSpans } from './observe/invocation-spans.ts'
import { inToolSpan } from './observe/rollout-spans.ts'
import { toolCallLimit } from './rollout-errors.ts'

export interface JournalledCall {
  readonly agent: string
  /** Id of the invocation that makes it. */
  readonly trajectory: string
  /** The model's id for the call; absent where the agent passed none. */
  readonly id: string | undefined
  readonly name: string
  /** JSON text. */
  readonly arguments: string
  /** Whether it is answered in the agent's process: a function, an agent, or a call that names no tool or has no valid arguments. */
  readonly isFunction?: boolean
}

export interface ToolJournalOptions {
  readonly rollout: string
  readonly maxToolCalls: number | undefined
  readonly spans: InvocationSpans
  readonly signal: AbortSignal
  /** Called when a budget is spent, to stop the rollout. */
  readonly onLimit: (error: TrainError) => void
}

/** Counts the tool calls of one attempt, keeps their records and holds their budget. */
export interface ToolJournal {
  /** Runs a call. Rejects with AGENT_LIMIT beyond the budget, with the signal's reason when it aborts, else as `run` does. */
  run(call: JournalledCall, run: (signal: AbortSignal) => Promise<ToolResult>): Promise<ToolResult>
  counts(): { readonly calls: number; readonly errors: number; readonly functions: number }
  /** The oldest call that has no answer yet. */
  open(): { readonly name: string; readonly startedAt: number } | null
  /** All calls in the order in which they began. Calls that still run are ended first. */
  calls(): ExecutedToolCall[]
}

interface Entry {
  readonly call: JournalledCall
  readonly startedAt: number
  endedAt: number
  result: ToolResult
}

/** Most bytes of base64 that are kept of the images of one attempt, and as many of the desktop after its calls. */
const maxImageBytes = 2 ** 20

export function createToolJournal({
  rollout,
  maxToolCalls = Number.POSITIVE_INFINITY,
  spans,
  signal,
  onLimit,
}: ToolJournalOptions): ToolJournal {
  const entries: Entry[] = []
  const imageBytes = { own: 0, desktop: 0 }

  function end(entry: Entry, { images = [], ...result }: ToolResult): void {
    if (entry.endedAt !== 0) return
    entry.endedAt = preciseNow()
    const kept = images.filter(({ data, shows }) => {
      const budget = shows ?? 'own'
      const isSmall = imageBytes[budget] + data.length <= maxImageBytes
      if (isSmall) imageBytes[budget] += data.length
      return isSmall
    })
    entry.result = kept.length > 0 ? { ...result, images: kept } : result
  }

  return {
    async run(call, run) {
      signal.throwIfAborted()
      if (entries.length >= maxToolCalls) {
        const error = toolCallLimit(rollout, maxToolCalls)
        onLimit(error)
        throw error
      }
      const entry: Entry = { call, startedAt: preciseNow(), endedAt: 0, result: { content: '', isError: false } }
      entries.push(entry)
      try {
        const result = await inToolSpan(spans.of(call.trajectory), call, () => orAborted(run(signal), signal))
        end(entry, result)
        return result
      } catch (error) {
        end(entry, { content: errorMessage(error), isError: true })
        throw error
      }
    },
    counts: () => ({
      calls: entries.length,
      errors: entries.filter(({ result }) => result.isError).length,
      functions: entries.filter(({ call }) => call.isFunction).length,
    }),
    open() {
      const entry = entries.find(({ endedAt }) => endedAt === 0)
      return entry ? { name: entry.call.name, startedAt: entry.startedAt } : null
    },
    calls: () =>
      entries.map((entry) => {
        end(entry, { content: 'The rollout ended before this call did.', isError: true })
        const { call, startedAt, endedAt, result } = entry
        const { agent, trajectory, id, name } = call
        return {
          agent,
          trajectory,
          ...(id !== undefined && { id }),
          name,
          arguments: call.arguments,
          ...result,
          timing: { startedAt, endedAt },
        }
      }),
  }
}
