/** Prefixes of the ids of an answer's items, by type. */
const prefixes = { reasoning: 'rs', message: 'msg', function_call: 'fc', custom_tool_call: 'ctc' } as const

export type ItemType = keyof typeof prefixes

/** Id of item `index` of the answer `id`. */
export const toItemId = (type: ItemType, id: string, index: number): string => `${prefixes[type]}_${id}_${index}`

const itemId = /^(?:rs|msg|fc|ctc)_(?<owner>[0-9a-f]+-\d+)_\d+$/

/** The answer that an item of ours belongs to; `null` for other ids. */
export function itemOwner(id: unknown): string | null {
  return typeof id === 'string' ? (itemId.exec(id)?.groups?.['owner'] ?? null) : null
}
