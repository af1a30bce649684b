import { didYouMean } from '@aworld-train/core'
import type { z } from 'zod'
import { describeIssue } from './describe-issue.ts'

/** The issues of a schema with a configuration, as sentences that name the key and, where one is near, the key that was probably meant. */
export function describeIssues(
  error: z.ZodError | undefined,
  { schema, value }: { readonly schema: z.ZodType; readonly value: unknown },
): string[] {
  return (error?.issues ?? []).flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      const fields = fieldsOf(schemaAt(schema, issue.path))
      return issue.keys.map((key) => `"${[...issue.path, key].join('.')}" is no key of the configuration.${didYouMean(key, fields)}`)
    }
    return [describeIssue(issue, valueAt(value, issue.path))]
  })
}

/** Names of the fields of an object schema, also under defaults and nullables; none for another schema. */
export const fieldsOf = (schema: unknown): string[] => Object.keys(objectSchema(schema)?.shape ?? {})

const valueAt = (tree: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], tree)

const schemaAt = (root: z.ZodType, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((schema, key) => (objectSchema(schema)?.shape as Record<PropertyKey, unknown> | undefined)?.[key], root)

/** The object schema under defaults and nullables. */
function objectSchema(schema: unknown): z.ZodObject | null {
  const { def } = (schema ?? {}) as { def?: { type: string; innerType?: unknown } }
  if (!def) return null
  return def.type === 'object' ? (schema as z.ZodObject) : objectSchema(def.innerType)
}
