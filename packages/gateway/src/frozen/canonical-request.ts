import { createHash } from 'node:crypto'
import { badRequest } from '../failure.ts'

/** Fields that name the caller and do not change the answer. */
const callerFields: ReadonlySet<string> = new Set(['user', 'metadata', 'safety_identifier', 'prompt_cache_key'])

/** Names of fields that hold ids of calls and messages, which differ from run to run. */
const idFields: ReadonlySet<string> = new Set(['id', 'tool_call_id', 'call_id', 'tool_use_id', 'item_id', 'previous_response_id'])

const maxDepth = 1_000

/** Puts keys in order, leaves callers out, and numbers ids as they first appear. */
function canonical(value: unknown, ids: Map<string, string>, depth = 0): unknown {
  if (depth > maxDepth) throw badRequest(`The body is nested more than ${maxDepth} deep; a recorded model takes no more.`)
  if (Array.isArray(value)) return value.map((item) => canonical(item, ids, depth + 1))
  if (typeof value !== 'object' || value === null) return value
  const sorted: [string, unknown][] = []
  for (const [name, member] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (depth === 0 && callerFields.has(name)) continue
    if (idFields.has(name) && typeof member === 'string') {
      if (!ids.has(member)) ids.set(member, `id-${ids.size}`)
      sorted.push([name, ids.get(member)])
    } else sorted.push([name, canonical(member, ids, depth + 1)])
  }
  return Object.fromEntries(sorted)
}

/** The place of a request in a run. A repetition of the run has the same values. */
export interface RequestOrigin {
  readonly taskId: string
  readonly sample: number
  readonly agent: string
  readonly model: string
}

/**
 * Returns equal keys for equal requests from the same place: 128 bits as hexadecimal digits. Throws GATEWAY_BAD_REQUEST for
 * a body that is nested too deep.
 */
export function requestKey({ taskId, sample, agent, model }: RequestOrigin, body: unknown): string {
  const text = JSON.stringify([taskId, sample, agent, model, canonical(body, new Map())])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
