import { suggest } from '@aworld-train/core'
import type { z } from 'zod'
import { describeIssues, fieldsOf } from './describe-issues.ts'
import { copyOf, isTree, type KeyTree } from './key-tree.ts'

export interface AcceptedPart<Schema extends z.ZodObject> {
  /** The configuration without what has a problem, as it was written and as the schema has it. */
  readonly written: KeyTree
  readonly data: z.output<Schema>
  /** A sentence for every problem. */
  readonly problems: readonly string[]
  /** Sections with a problem: what is missing there may stand in what was left out. */
  readonly failed: readonly string[]
}

/** What of a configuration its schema accepts, so that one problem hides none and causes none of the others. */
export function acceptedPart<Schema extends z.ZodObject>(schema: Schema, value: KeyTree): AcceptedPart<Schema> {
  const first = schema.safeParse(value)
  if (first.success) return { written: value, data: first.data, problems: [], failed: [] }
  const failed = new Set(
    placesOf(first.error).flatMap(([section = '']) => [String(section), suggest(String(section), fieldsOf(schema)) ?? []].flat()),
  )
  const rest = copyOf(value) as Record<string, unknown>
  // One place at a time: what is left out takes other places with it.
  for (let error: z.ZodError | undefined = first.error; error !== undefined; error = schema.safeParse(rest).error)
    leaveOut(rest, placesOf(error)[0] ?? [])
  return { written: rest, data: schema.parse(rest), problems: describeIssues(first.error, { schema, value }), failed: [...failed] }
}

const placesOf = ({ issues }: z.ZodError) =>
  issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]))

/** Deletes what stands at a place; where nothing does, the section around it, which lacks it. */
function leaveOut(tree: Record<string, unknown>, place: readonly PropertyKey[]): void {
  for (let depth = place.length; depth > 0; depth--) {
    const path = place.slice(0, depth).map(String)
    const parent = path.slice(0, -1).reduce<unknown>((at, key) => (isTree(at) ? at[key] : undefined), tree)
    const key = path.at(-1) as string
    if (!isTree(parent) || !(key in parent)) continue
    delete (parent as Record<string, unknown>)[key]
    return
  }
  // The problem is one of the whole.
  for (const key of Object.keys(tree)) delete tree[key]
}
