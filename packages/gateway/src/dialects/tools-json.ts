import type { ToolDefinition } from '@aworld-train/core'
import { nestedText } from './member-text.ts'

/** A tool in the form of Chat Completions, with the text of its schema as it was written. */
function toolJson({ name, description }: ToolDefinition, schema: string, strict: string | undefined): string {
  const described = description === undefined ? '' : `,"description":${JSON.stringify(description)}`
  const strictly = strict === undefined || strict === 'null' ? '' : `,"strict":${strict}`
  return `{"type":"function","function":{"name":${JSON.stringify(name)}${described},"parameters":${schema}${strictly}}}`
}

/** A tool, with its text as the dialect writes it. */
export interface WrittenTool {
  readonly tool: ToolDefinition
  readonly text: string
  /** Path to the schema in `text`; `null` if the tool has none of its own. */
  readonly schemaPath: readonly string[] | null
}

/** The tools of a request in the form of Chat Completions, in their order. */
export function wrapToolsJson(written: readonly WrittenTool[]): string | undefined {
  if (written.length === 0) return undefined
  const wrapped = written.map(({ tool, text, schemaPath }) => {
    if (schemaPath === null) return toolJson(tool, JSON.stringify(tool.parameters), undefined)
    const schema = nestedText(text, schemaPath)
    const strict = nestedText(text, [...schemaPath.slice(0, -1), 'strict'])
    return toolJson(tool, schema === undefined || schema === 'null' ? JSON.stringify(tool.parameters) : schema, strict)
  })
  return `[${wrapped.join(',')}]`
}

/** Schema of the function that stands for a tool whose input is plain text. */
export const customToolSchema: ToolDefinition['parameters'] = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
}

/** Wraps plain text as the arguments of the call that stands for it. */
export const toCustomArguments = (input: string): string => JSON.stringify({ input })

/** The plain text that a call stands for; its arguments as they are if the policy wrote something else. */
export function fromCustomArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    const input = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)['input'] : undefined
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}
