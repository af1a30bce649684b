import type { RolloutQuery, RolloutRow } from '@aworld-train/core'

/** Writes a query as parameters of an address. */
export function toSearch(query: RolloutQuery): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]])),
  )
}

const numbers = ['step', 'minReward', 'maxReward', 'finishedAfter', 'limit'] as const
const texts = ['split', 'group', 'taskId', 'kind', 'after'] as const

/** Reads a query from the parameters of an address. A value that should be a number and is none is left out. */
export function fromSearch(search: URLSearchParams): RolloutQuery {
  const query: Record<string, unknown> = {}
  for (const name of texts) if (search.has(name)) query[name] = search.get(name)
  for (const name of numbers) {
    const value = search.get(name)
    if (value !== null && value !== '' && Number.isFinite(Number(value))) query[name] = Number(value)
  }
  if (search.has('status')) query['status'] = search.get('status') as RolloutRow['status']
  if (search.has('stopReason')) query['stopReason'] = search.get('stopReason')
  return query as RolloutQuery
}
