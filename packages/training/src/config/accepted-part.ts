import { suggest } from '@aworld-train/core'
import type { z } from 'zod'
import { describeIssues, fieldsOf } from './describe-issues.ts'
import { copyOf, isTree, type KeyTree } from './key-tree.ts'

export interface AcceptedPart<Schema extends z.ZodObject> {
  /** The configuration without its invalid parts, as it was written and as the schema reads it. */
  readonly written: KeyTree
  readonly data: z.output<Schema>
  /** One sentence for each problem. */
  readonly problems: readonly string[]
  /** Sections with a problem. What is missing there may have been in a part that was left out. */
  readonly failed: readonly string[]
}

/** The parts of a configuration that its schema accepts, so that one problem neither hides nor causes another. */
export function acceptedPart<Schema extends z.ZodObject>(schema: Schema, value: KeyTree): AcceptedPart<Schema> {
  const first = schema.safeParse(value)
  if (first.success) return { written: value, data: first.data, problems: [], failed: [] }
  const failed = new Set(
    placesOf(first.error).flatMap(([section = '']) => [String(section), suggest(String(section), fieldsOf(schema)) ?? []].flat()),
  )
  const rest = copyOf(value) as Record<string, unknown>
  // One place is left out at a time, because its removal can resolve problems of other places.
  for (let error: z.ZodError | undefined = first.error; error !== undefined; error = schema.safeParse(rest).error)
    leaveOut(rest, placesOf(error)[0] ?? [])
  return { written: rest, data: schema.parse(rest), problems: describeIssues(first.error, { schema, value }), failed: [...failed] }
}

const placesOf = ({ issues }: z.ZodError) =>
  issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]))

/** Deletes the value at a place, or, if there is none, the section around it, which lacks it. */
function leaveOut(tree: Record<string, unknown>, place: readonly PropertyKey[]): void {
  for (let depth = place.length; depth > 0; depth--) {
    const path = place.slice(0, depth).map(String)
    const parent = path.slice(0, -1).reduce<unknown>((at, key) => (isTree(at) ? at[key] : undefined), tree)
    const key = path.at(-1) as string
    if (!isTree(parent) || !(key in parent)) continue
    delete (parent as Record<string, unknown>)[key]
    return
  }
  // The problem concerns the whole.
  for (const key of Object.keys(tree)) delete tree[key]
}
