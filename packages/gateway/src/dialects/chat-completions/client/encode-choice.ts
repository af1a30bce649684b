import type { ToolChoice } from '../../../call.ts'

/**
 * Writes a choice for servers that do not know `allowed_tools`, such as vLLM 0.32. `keepAllowed` leaves out the tools that are not allowed,
 * and this is the choice among the rest.
 */
export function encodeToolChoice({ kind, name }: ToolChoice): unknown {
  return kind === 'named' && name !== undefined ? { type: 'function', function: { name } } : kind
}

/**
 * Keeps the items whose tools may be called. `items` has one entry for each of `names`. `none` keeps them all,
 * although no tool may be called.
 */
export function keepAllowed<T>({ allowed }: ToolChoice, names: readonly string[], items: readonly T[]): readonly T[] {
  return allowed === undefined ? items : items.filter((_, index) => allowed.includes(names[index]!))
}
