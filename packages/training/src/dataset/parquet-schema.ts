import { isRecord } from '@aworld-train/core'
import type { SchemaElement } from 'hyparquet'
import { z } from 'zod'

export type Shape =
  | { readonly kind: 'null' | 'string' | 'boolean' | 'integer' | 'number' | 'mixed' | 'json' }
  | { readonly kind: 'list' | 'map'; readonly item: Shape }
  | { readonly kind: 'struct'; readonly fields: ReadonlyMap<string, Shape> }

/** A column with nested values: its schema elements, and the values in the form of that schema. */
export interface NestedColumn {
  readonly elements: SchemaElement[]
  readonly data: unknown[]
}

/** The narrowest shape that holds all values. A place where they disagree on a type becomes JSON text. */
export const shapeOfValues = (values: readonly unknown[]): Shape => values.map(shapeOf).reduce(unite, { kind: 'null' })

/**
 * The columns of rows that a schema describes, in the form that it has on the wire. Their types are those of the schema, whatever the rows
 * hold: integers of 64 bits, doubles, text, lists, structs, and maps. A value without such a type becomes JSON text.
 */
export function shapesOfSchema(schema: z.ZodObject): ReadonlyMap<string, Shape> {
  return fieldsOf(z.toJSONSchema(schema, { io: 'input' }))
}

type JsonSchema = z.core.JSONSchema.BaseSchema | boolean

const fieldsOf = ({ properties = {} }: z.core.JSONSchema.BaseSchema) =>
  new Map(Object.entries(properties).map(([name, member]) => [name, shapeOfSchema(member)]))

function shapeOfSchema(schema: JsonSchema): Shape {
  if (!isRecord(schema)) return { kind: 'json' }
  const { type, items, properties, additionalProperties } = schema as z.core.JSONSchema.BaseSchema
  const alternatives = schema.anyOf?.filter((each) => !isRecord(each) || each.type !== 'null')
  if (alternatives?.length === 1) return shapeOfSchema(alternatives[0] as JsonSchema)
  const [kind, ...others] = [type].flat().filter((each) => each !== 'null')
  if (others.length > 0) return { kind: 'json' }
  if (kind === 'integer' || Number.isInteger(schema.const)) return { kind: 'integer' }
  if (kind === 'string' || kind === 'boolean' || kind === 'number') return { kind }
  if (kind === 'array' && isRecord(items)) return { kind: 'list', item: shapeOfSchema(items) }
  if (kind === 'object' && properties) return { kind: 'struct', fields: fieldsOf(schema) }
  const item = kind === 'object' && isRecord(additionalProperties) ? shapeOfSchema(additionalProperties) : null
  return item === null || item.kind === 'json' ? { kind: 'json' } : { kind: 'map', item }
}

/** A column of values that have this shape. */
export function toNestedColumn(name: string, values: readonly unknown[], shape: Shape): NestedColumn {
  return { elements: toElements(name, shape), data: values.map((value) => conform(value, shape)) }
}

function shapeOf(value: unknown): Shape {
  if (value === null || value === undefined) return { kind: 'null' }
  if (typeof value === 'string') return { kind: 'string' }
  if (typeof value === 'boolean') return { kind: 'boolean' }
  if (typeof value === 'number') return { kind: Number.isSafeInteger(value) ? 'integer' : 'number' }
  if (Array.isArray(value)) return { kind: 'list', item: value.map(shapeOf).reduce(unite, { kind: 'null' }) }
  if (typeof value !== 'object') return { kind: 'mixed' }
  const fields = Object.entries(value).filter(([, member]) => member !== undefined)
  // Parquet has no group without fields.
  return fields.length === 0 ? { kind: 'null' } : { kind: 'struct', fields: new Map(fields.map(([key, member]) => [key, shapeOf(member)])) }
}

function unite(a: Shape, b: Shape): Shape {
  if (a.kind === 'null') return b
  if (b.kind === 'null') return a
  if (a.kind === 'list' && b.kind === 'list') return { kind: 'list', item: unite(a.item, b.item) }
  if (a.kind === 'struct' && b.kind === 'struct') {
    const fields = new Map(a.fields)
    for (const [key, shape] of b.fields) fields.set(key, unite(fields.get(key) ?? { kind: 'null' }, shape))
    return { kind: 'struct', fields }
  }
  if (a.kind === b.kind) return a
  const isNumeric = (shape: Shape) => shape.kind === 'integer' || shape.kind === 'number'
  return isNumeric(a) && isNumeric(b) ? { kind: 'number' } : { kind: 'mixed' }
}

function toElements(name: string, shape: Shape): SchemaElement[] {
  const field = { name, repetition_type: 'OPTIONAL' } as const
  switch (shape.kind) {
    case 'list':
      return [
        { ...field, converted_type: 'LIST', num_children: 1 },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        ...toElements('element', shape.item),
      ]
    case 'map':
      return [
        { ...field, converted_type: 'MAP', num_children: 1 },
        { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
        { name: 'key', repetition_type: 'REQUIRED', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
        ...toElements('value', shape.item),
      ]
    case 'struct':
      return [{ ...field, num_children: shape.fields.size }, ...[...shape.fields].flatMap(([key, member]) => toElements(key, member))]
    case 'boolean':
      return [{ ...field, type: 'BOOLEAN' }]
    case 'integer':
      return [{ ...field, type: 'INT64' }]
    case 'number':
      return [{ ...field, type: 'DOUBLE' }]
    default:
      return [{ ...field, type: 'BYTE_ARRAY', converted_type: 'UTF8' }]
  }
}

function conform(value: unknown, shape: Shape): unknown {
  if (value === null || value === undefined) return null
  if (shape.kind === 'list') return (value as unknown[]).map((item) => conform(item, shape.item))
  if (shape.kind === 'map') return Object.entries(value).map(([key, member]) => ({ key, value: conform(member, shape.item) }))
  if (shape.kind === 'struct') {
    const record = value as Record<string, unknown>
    const members = [...shape.fields].map(([key, member]) => [key, conform(record[key], member)])
    return Object.fromEntries(members)
  }
  if (shape.kind === 'integer') return BigInt(value as number)
  if (shape.kind === 'json') return JSON.stringify(value)
  if (shape.kind === 'mixed') return typeof value === 'string' ? value : JSON.stringify(value)
  return shape.kind === 'null' ? null : value
}
