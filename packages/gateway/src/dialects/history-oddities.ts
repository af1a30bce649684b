import type { Message } from '@aworld-train/core'

/** An oddity of a history that is no error. The history is served as it stands, and the oddity is counted. */
export type Oddity = 'result-without-call' | 'repeated-call-id'

/** The oddities of a request's messages, one entry each. */
export function historyOddities(messages: readonly Message[]): Oddity[] {
  const oddities: Oddity[] = []
  const called = new Set<string>()
  for (const { toolCalls = [], role, toolCallId } of messages) {
    for (const { id } of toolCalls) {
      if (called.has(id)) oddities.push('repeated-call-id')
      called.add(id)
    }
    if (role === 'tool' && toolCallId !== undefined && !called.has(toolCallId)) oddities.push('result-without-call')
  }
  return oddities
}
