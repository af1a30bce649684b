import { createMcpHandler } from '@modelcontextprotocol/server'
import { type Counter, counterServer } from './counter-server.ts'

const idleMs = 10 * 60_000
const counters = new Map<string, Counter & { usedAt: number }>()

/** The counter of a lease, by what its requests say; those that nobody has used for long are dropped. */
function counterOf(lease: string): Counter {
  const now = Date.now()
  for (const [key, { usedAt }] of counters) if (now - usedAt > idleMs) counters.delete(key)
  const counter = counters.get(lease) ?? { count: 0, usedAt: now }
  counter.usedAt = now
  counters.set(lease, counter)
  return counter
}

/** Answers MCP over HTTP, in the protocol with sessions and in the one without. */
export const { fetch: answer } = createMcpHandler(({ requestInfo }) =>
  counterServer(counterOf(requestInfo?.headers.get('session_id') ?? '')),
)
