import type { ToolChoice } from '../../../call.ts'

/**
 * A choice as servers know it that do not know `allowed_tools`, such as vLLM 0.32: of the tools, those that are not allowed are
 * left out by `keepAllowed`, and what is left is the choice among them.
 */
export function encodeToolChoice({ kind, name }: ToolChoice): unknown {
  return kind === 'named' && name !== undefined ? { type: 'function', function: { name } } : kind
}

/** Of `items`, one for each of the tools with these names, those that may be called; all of them where none may, which only `none` says. */
export function keepAllowed<T>({ allowed }: ToolChoice, names: readonly string[], items: readonly T[]): readonly T[] {
  return allowed === undefined ? items : items.filter((_, index) => allowed.includes(names[index]!))
}
