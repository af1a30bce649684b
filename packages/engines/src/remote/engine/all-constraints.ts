import type { Constraint } from '@aworld-train/core'

const kinds: Readonly<Record<Constraint['kind'], true>> = {
  'json-object': true,
  'json-schema': true,
  regex: true,
  choice: true,
  grammar: true,
}

/** Every kind of constraint. Both engines compile them with grammar back ends of their own. */
export const allConstraints: ReadonlySet<Constraint['kind']> = new Set(Object.keys(kinds) as Constraint['kind'][])
