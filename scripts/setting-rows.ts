import { z } from 'zod'

interface SchemaNode {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly description?: string
  readonly default?: unknown
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: SchemaNode | boolean
  readonly items?: SchemaNode | boolean
  readonly prefixItems?: readonly SchemaNode[]
  readonly $ref?: string
}

/** A setting as its page shows it; `type` and `initial` are Markdown. */
export interface SettingRow {
  readonly key: string
  readonly type: string
  readonly initial: string
  readonly meaning: string
}

/** A section of a configuration; the keys at its top are the section without a name. */
export interface SettingSection {
  readonly name: string
  readonly meaning: string
  readonly rows: readonly SettingRow[]
}

/** The settings of a schema by section. Throws where one of them says nothing of itself. */
export function settingSections(schema: z.ZodObject): SettingSection[] {
  const { properties = {}, required = [] } = schemaNode(schema)
  const top: SettingRow[] = []
  const sections: SettingSection[] = []
  for (const [name, node] of Object.entries(properties)) {
    const rows = rowsOf(node, name, required.includes(name))
    if (rows.length === 1 && rows[0]?.key === name) top.push(...rows)
    else sections.push({ name, meaning: sectionOf(node)?.nullable || membersOf(node) ? '' : (node.description ?? ''), rows })
  }
  return [...(top.length > 0 ? [{ name: '', meaning: '', rows: top }] : []), ...sections]
}

/** The settings of a schema in one list, below `prefix` where there is one. */
export function settingRows(schema: z.ZodType, prefix = ''): SettingRow[] {
  return rowsBelow(schemaNode(schema), prefix)
}

/** The type of a schema as a person writes it: `"a" | "b"`, `integer ≥ 1`, `string[]`. */
export const typeText = (schema: z.ZodType): string => textOf(schemaNode(schema))

function schemaNode(schema: z.ZodType): SchemaNode {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    // The only values of ours that JSON has no word for are functions.
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'custom') Object.assign(jsonSchema, { type: 'function' })
    },
  }) as SchemaNode
}

function rowsBelow({ properties = {}, required = [] }: SchemaNode, path: string): SettingRow[] {
  return Object.entries(properties).flatMap(([name, node]) => rowsOf(node, path ? `${path}.${name}` : name, required.includes(name)))
}

/** A setting and those below it. A section has no row of its own, unless it may be `null`. */
function rowsOf(node: SchemaNode, key: string, isRequired: boolean): SettingRow[] {
  const section = sectionOf(node)
  if (section && !section.nullable) return rowsBelow(section.node, key)
  if (!node.description)
    throw new Error(`${key} has no description; add .describe(…) to its schema: what it means, in which unit, and what it does.`)
  const type = section ? 'section \\| null' : `\`${textOf(node).replaceAll('|', '\\|')}\``
  const initial = isRequired ? 'required' : node.default === undefined ? 'none' : initialText(key, node.default)
  const row = { key, type, initial, meaning: node.description }
  const members = membersOf(node)
  return [row, ...(section ? rowsBelow(section.node, key) : []), ...(members ? rowsBelow(members, `${key}.NAME`) : [])]
}

function sectionOf(node: SchemaNode): { readonly node: SchemaNode; readonly nullable: boolean } | null {
  if (node.properties) return { node, nullable: false }
  const [inner, other, ...more] = node.anyOf ?? []
  return inner?.properties && other?.type === 'null' && more.length === 0 ? { node: inner, nullable: true } : null
}

/** What a mapping of names holds, where that is a section. */
function membersOf({ additionalProperties: members }: SchemaNode): SchemaNode | null {
  return typeof members === 'object' && members.properties ? members : null
}

function textOf(node: SchemaNode): string {
  if (node.const !== undefined) return JSON.stringify(node.const)
  if (node.enum) return node.enum.map((value) => JSON.stringify(value)).join(' | ')
  const choices = node.anyOf ?? node.oneOf
  if (choices) return choices.map(textOf).join(' | ')
  if (node.$ref || node.type === undefined) return 'JSON'
  if (Array.isArray(node.type)) return node.type.join(' | ')
  if (node.prefixItems) return `[${node.prefixItems.map(textOf).join(', ')}]`
  if (node.type === 'array') return listText(typeof node.items === 'object' ? textOf(node.items) : 'JSON')
  if (node.properties)
    return `{ ${Object.entries(node.properties)
      .map(([name, child]) => `${name}: ${textOf(child)}`)
      .join(', ')} }`
  if (typeof node.additionalProperties === 'object')
    return `{ NAME: ${sectionOf(node.additionalProperties) || node.additionalProperties.oneOf ? '…' : textOf(node.additionalProperties)} }`
  return node.type === 'integer' || node.type === 'number' ? rangeText(node, node.type) : String(node.type)
}

const listText = (item: string) => (/^["\w]+$/.test(item) ? `${item}[]` : `(${item})[]`)

/** Bounds that no person comes near, the longest time of a timer among them, are left out. */
const farAway = 2 ** 31 - 1

function rangeText({ minimum, exclusiveMinimum, maximum }: SchemaNode, type: string): string {
  const least = minimum !== undefined && minimum > -farAway ? { bound: minimum, below: '≤', above: '≥' } : null
  const low = exclusiveMinimum === undefined ? least : { bound: exclusiveMinimum, below: '<', above: '>' }
  const high = maximum !== undefined && maximum < farAway ? ` ≤ ${maximum}` : ''
  if (low === null) return `${type}${high}`
  return high === '' ? `${type} ${low.above} ${low.bound}` : `${low.bound} ${low.below} ${type}${high}`
}

function initialText(key: string, value: unknown): string {
  const units = /Ms$/.test(key) ? times : /Bytes$/.test(key) ? sizes : []
  const [unit, size] = units.find(([, size]) => typeof value === 'number' && value >= size && value % size === 0) ?? []
  return `\`${JSON.stringify(value)}\`${unit === undefined ? '' : ` (${Number(value) / Number(size)} ${unit})`}`
}

const times = [
  ['min', 60_000],
  ['s', 1_000],
] as const
const sizes = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const
