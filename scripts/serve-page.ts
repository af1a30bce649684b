import { z } from 'zod'
import { ServeConfig } from '../packages/cli/src/serve/serve-config.ts'

interface SchemaNode {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: SchemaNode | boolean
  readonly items?: SchemaNode
}

/** The object in a node that may also be null. */
function objectIn(node: SchemaNode): SchemaNode | undefined {
  return node.properties ? node : node.anyOf?.find((each) => each.properties)
}

function typeOf(node: SchemaNode): string {
  if (node.const !== undefined) return `\`${String(node.const)}\``
  if (node.enum) return node.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (node.anyOf) return node.anyOf.map(typeOf).join(' or ')
  if (node.properties) return `{${Object.keys(node.properties).join(', ')}}`
  if (node.type === 'array') return `list of ${node.items ? typeOf(node.items) : 'values'}`
  if (node.type === 'object') return 'names to values'
  return node.type ?? 'any'
}

function rowsOf(node: SchemaNode, path: string): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const full = path === '' ? name : `${path}.${name}`
    const inner = objectIn(child)
    if (inner && Object.keys(inner.properties ?? {}).length > 1) {
      const off = child.default === null ? [`| \`${full}\` | a section, or null | \`null\` |`] : []
      return [...off, ...rowsOf(inner, full)]
    }
    if (child.additionalProperties && typeof child.additionalProperties === 'object' && child.additionalProperties.oneOf) return []
    const required = node.required?.includes(name) ? 'required' : child.default === undefined ? '' : `\`${JSON.stringify(child.default)}\``
    return [`| \`${full}\` | ${typeOf(child)} | ${required} |`]
  })
}

const table = (rows: readonly string[]) => ['| key | type | default |', '|---|---|---|', ...rows]

/** The reference of the file that `serve --config` reads. */
export function servePage(): string {
  const schema = z.toJSONSchema(ServeConfig, { io: 'input', unrepresentable: 'any' }) as SchemaNode
  const models = schema.properties?.['models']?.additionalProperties as SchemaNode
  const kinds = (models.oneOf ?? []).flatMap((model) => {
    const kind = String(model.properties?.['kind']?.const)
    return ['', `### ${kind}`, '', ...table(rowsOf(model, 'models.NAME'))]
  })
  return [
    '# Configuration of serve',
    '',
    'Generated from `packages/cli/src/serve/serve-config.ts` by `npm run generate`; what each key means stands there.',
    '',
    'The file of `aworld-train serve --config FILE` is YAML or JSON; paths in it are relative to it. An unknown key is an error with a suggestion. How the parts go together: [Serve agents that run elsewhere](../3.guides/serving.md).',
    '',
    ...table(rowsOf(schema, '')),
    '',
    '## Models',
    '',
    '`models` maps the names that agents ask for to models, each of one `kind`.',
    ...kinds,
    '',
  ].join('\n')
}
