import { didYouMean } from '@aworld-train/core'
import type { z } from 'zod'
import { describeIssue } from './describe-issue.ts'

/** Describes the issues of a configuration in sentences that name the key and, if one is similar, the key that was probably meant. */
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

/** Names of the fields of an object schema, also below defaults and nullables; none for another schema. */
export const fieldsOf = (schema: unknown): string[] => Object.keys(definitionOf(schema)?.shape ?? {})

const valueAt = (tree: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], tree)

/** The schema of a field. All values of a record have one. */
function schemaAt(root: z.ZodType, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((schema, key) => {
    const definition = definitionOf(schema)
    return definition?.valueType ?? definition?.shape?.[key]
  }, root)
}

interface SchemaDefinition {
  readonly innerType?: unknown
  /** Fields of an object. */
  readonly shape?: Readonly<Record<PropertyKey, unknown>>
  /** Schema of a record's values. */
  readonly valueType?: unknown
}

/** What a schema is made of, below defaults and nullables. */
function definitionOf(schema: unknown): SchemaDefinition | undefined {
  const { def } = (schema ?? {}) as { def?: SchemaDefinition }
  return def?.innerType === undefined ? def : definitionOf(def.innerType)
}
