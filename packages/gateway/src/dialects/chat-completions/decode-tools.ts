import type { ToolDefinition } from '@aworld-train/protocol'
import { badRequest } from '../../failure.ts'
import { memberText } from '../member-text.ts'
import { checkDepth, type Fields, readArray, readObject, readOptionalString, readString } from '../read-fields.ts'
import type { RequestedChoice } from '../tool-choice.ts'
import { customToolSchema, wrapToolsJson } from '../tools-json.ts'

/** The tools of a request, and their text for a lossless rendering. */
export interface DecodedTools {
  readonly tools: readonly ToolDefinition[]
  readonly toolsJson: string | undefined
  readonly customTools: ReadonlySet<string>
}

function decodeTool(value: unknown, path: string, customTools: Set<string>): ToolDefinition {
  const tool = readObject(value, path)
  const type = readString(tool['type'], `${path}.type`)
  if (type !== 'function' && type !== 'custom') {
    throw badRequest(`"${path}.type" is "${type}"; only "function" and "custom" tools are known.`, `${path}.type`)
  }
  const at = `${path}.${type}`
  const definition = readObject(tool[type], at)
  const name = readString(definition['name'], `${at}.name`)
  const description = readOptionalString(definition['description'], `${at}.description`)
  if (type === 'custom') customTools.add(name)
  const parameters = type === 'custom' ? customToolSchema : readObject(definition['parameters'] ?? {}, `${at}.parameters`)
  checkDepth(parameters, `${at}.parameters`)
  return description === undefined ? { name, parameters } : { name, description, parameters }
}

/** `tools` of a request; a tool with plain text as its input becomes a function. */
export function decodeTools(body: Fields, json: string): DecodedTools {
  const customTools = new Set<string>()
  const items = body['tools'] === undefined || body['tools'] === null ? [] : readArray(body['tools'], 'tools')
  if (items.length === 0) return { tools: [], toolsJson: undefined, customTools }
  const tools = items.map((tool, index) => decodeTool(tool, `tools[${index}]`, customTools))
  const toolsJson = customTools.size > 0 ? wrapToolsJson(json, ['function', 'parameters'], tools, customTools) : memberText(json, 'tools')
  return { tools, toolsJson, customTools }
}

/** Name in a reference such as `{type: 'function', function: {name}}`. */
function referredName(value: unknown, path: string): string {
  const fields = readObject(value, path)
  const type = readString(fields['type'], `${path}.type`)
  if (type !== 'function' && type !== 'custom') {
    throw badRequest(`"${path}.type" is "${type}"; it must be function or custom.`, `${path}.type`)
  }
  return readString(readObject(fields[type], `${path}.${type}`)['name'], `${path}.${type}.name`)
}

/** `tool_choice` of a request. */
export function decodeToolChoice(choice: unknown): RequestedChoice {
  const path = 'tool_choice'
  if (choice === undefined || choice === null) return { kind: 'auto' }
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { kind: choice }
  if (typeof choice === 'string') throw badRequest(`"${path}" is "${choice}"; it must be auto, none, required or an object.`, path)
  const fields = readObject(choice, path)
  if (fields['type'] !== 'allowed_tools') return { kind: 'named', name: referredName(choice, path) }
  const allowed = readObject(fields['allowed_tools'], `${path}.allowed_tools`)
  const tools = readArray(allowed['tools'], `${path}.allowed_tools.tools`)
  return {
    kind: allowed['mode'] === 'required' ? 'required' : 'auto',
    allowed: tools.map((tool, index) => referredName(tool, `${path}.allowed_tools.tools[${index}]`)),
  }
}
