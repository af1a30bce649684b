import type { CompletionDelta, ParsedCompletion } from '@aworld-train/chat'
import type { ToolChoice } from '../call.ts'

/**
 * Lets through the calls of a completion that its tool choice allows: those of allowed tools, and only the first if
 * parallel calls are not wanted.
 */
export interface CallFilter {
  deltas(deltas: readonly CompletionDelta[]): readonly CompletionDelta[]
  completion(parsed: ParsedCompletion): ParsedCompletion
}

const everything: CallFilter = { deltas: (deltas) => deltas, completion: (parsed) => parsed }

/**
 * Creates the filter of one completion. A call that is held back stays in the sampled tokens and is counted as `call-not-allowed` or
 * `call-not-parallel`. The choice does not change the prompt, because otherwise the next turn could not continue this one.
 */
export function createCallFilter({ parallel, allowed }: ToolChoice): CallFilter {
  if (parallel && allowed === undefined) return everything
  let passed = 0
  const issueOf = (name: string, before: number): string | null => {
    if (allowed !== undefined && !allowed.includes(name)) return 'call-not-allowed'
    return parallel || before === 0 ? null : 'call-not-parallel'
  }

  return {
    deltas: (deltas) =>
      deltas.flatMap((delta): CompletionDelta[] => {
        if (delta.type !== 'tool-call') return [delta]
        return issueOf(delta.call.name, passed) === null ? [{ ...delta, index: passed++ }] : []
      }),
    completion(parsed) {
      const { toolCalls = [], ...message } = parsed.message
      const issues: string[] = []
      const indices: number[] = []
      for (const [index, call] of toolCalls.entries()) {
        const issue = issueOf(call.name, indices.length)
        if (issue === null) indices.push(index)
        else issues.push(issue)
      }
      if (issues.length === 0) return parsed
      const calls = indices.map((index) => toolCalls[index]!)
      return {
        ...parsed,
        message: calls.length > 0 ? { ...message, toolCalls: calls } : { ...message, content: message.content ?? '' },
        finishReason: parsed.finishReason === 'tool-calls' && calls.length === 0 ? 'stop' : parsed.finishReason,
        issues: [...parsed.issues, ...issues],
        promptCallIds: indices.map((index) => parsed.promptCallIds[index] ?? null),
      }
    },
  }
}
