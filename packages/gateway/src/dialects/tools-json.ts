import type { ToolDefinition } from '@aworld-train/protocol'
import { itemTexts, memberText, nestedText } from './member-text.ts'

/** A tool in the form of Chat Completions, with the text of its schema as it was written. */
function toolJson({ name, description }: ToolDefinition, schema: string, strict: string | undefined): string {
  const described = description === undefined ? '' : `,"description":${JSON.stringify(description)}`
  const strictly = strict === undefined || strict === 'null' ? '' : `,"strict":${strict}`
  return `{"type":"function","function":{"name":${JSON.stringify(name)}${described},"parameters":${schema}${strictly}}}`
}

/**
 * The tools of a request in the form of Chat Completions. `schemaPath` leads to the schema in each tool as the dialect writes
 * it, `tools` are those of the request in their order, and `customTools` those without a schema of their own.
 */
export function wrapToolsJson(
  json: string,
  schemaPath: readonly string[],
  tools: readonly ToolDefinition[],
  customTools: ReadonlySet<string>,
): string | undefined {
  const texts = itemTexts(memberText(json, 'tools') ?? '[]')
  if (texts.length === 0) return undefined
  const wrapped = tools.map((tool, index) => {
    const text = texts[index] ?? '{}'
    const written = customTools.has(tool.name) ? undefined : nestedText(text, schemaPath)
    const strict = nestedText(text, [...schemaPath.slice(0, -1), 'strict'])
    return toolJson(tool, written === undefined || written === 'null' ? JSON.stringify(tool.parameters) : written, strict)
  })
  return `[${wrapped.join(',')}]`
}

/** Schema of the function that stands for a tool whose input is plain text. */
export const customToolSchema: ToolDefinition['parameters'] = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
}

/** Arguments of the call that stands for a call with plain text. */
export const toCustomArguments = (input: string): string => JSON.stringify({ input })

/** The plain text that a call stands for; its arguments as they are, where the policy wrote something else. */
export function fromCustomArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    const input = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)['input'] : undefined
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}
