import { isRecord, type ToolDefinition } from '@aworld-train/core'
import { tryJson } from './call-object.ts'

type Schema = Readonly<Record<string, unknown>>

/**
 * JSON text of values that a model writes without quotes, by the schema of the tool. A string is a string if one is asked for, so
 * that `007` stays text; otherwise a value is JSON, or one of Python's words if `words` has it. A value that fits no type becomes a
 * string, which the client may refuse.
 */
export function typedValues(
  name: string,
  tools: readonly ToolDefinition[],
  words: Readonly<Record<string, string>> = {},
): (key: string, text: string) => string {
  const root = asSchema(tools.find((tool) => tool.name === name)?.parameters)
  const properties = asSchema(root?.['properties'])
  return (key, text) => {
    const schema = asSchema(properties && Object.hasOwn(properties, key) ? properties[key] : undefined)
    const types = schema && root ? typesOf(schema, root) : new Set<string>()
    return valueText(text, types, words)
  }
}

function valueText(text: string, types: ReadonlySet<string>, words: Readonly<Record<string, string>>): string {
  const trimmed = text.trim()
  const json = Object.hasOwn(words, trimmed) ? words[trimmed]! : trimmed
  const type = jsonType(json)
  if (type !== null && (types.size === 0 || fits(type, json, types))) return json
  return JSON.stringify(text)
}

/** The JSON type of a text; `null` if it is not JSON. A quoted text counts as text with quotes. */
function jsonType(text: string): string | null {
  const node = tryJson(text)
  return node === null || node.kind === 'string' ? null : node.kind
}

function fits(type: string, json: string, types: ReadonlySet<string>): boolean {
  if (type !== 'number') return types.has(type)
  return types.has('number') || (types.has('integer') && Number.isInteger(Number(json)))
}

/** The types that a schema allows, through `$ref`, unions and enumerations; empty for any. */
function typesOf(schema: Schema, root: Schema): Set<string> {
  const types = new Set<string>()
  const reached = new Set([schema])
  for (const one of reached) {
    const { type } = one
    for (const name of Array.isArray(type) ? type : [type]) if (typeof name === 'string') types.add(name)
    const values = 'const' in one ? [one['const']] : Array.isArray(one['enum']) && type === undefined ? one['enum'] : []
    for (const value of values) types.add(typeOfValue(value))
    for (const next of partsOf(one, root)) reached.add(next)
  }
  return types
}

function partsOf(schema: Schema, root: Schema): Schema[] {
  const members = [schema['anyOf'], schema['oneOf'], schema['allOf']].flatMap((part) => (Array.isArray(part) ? part : []))
  const target = typeof schema['$ref'] === 'string' ? [resolve(schema['$ref'], root)] : []
  return [...members.map(asSchema), ...target].filter((part) => part !== undefined)
}

function typeOfValue(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function resolve(reference: string, root: Schema): Schema | undefined {
  if (!reference.startsWith('#/')) return undefined
  let at: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as Schema)[key] : undefined
  }
  return asSchema(at)
}

function asSchema(value: unknown): Schema | undefined {
  return isRecord(value) ? value : undefined
}
