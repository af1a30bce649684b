import { badRequest } from '../../failure.ts'
import { memberText } from '../member-text.ts'
import { type Fields, readArray, readObject, readString } from '../read-fields.ts'
import type { RequestedChoice } from '../tool-choice.ts'
import { ToolList, toolItems } from '../tool-list.ts'

/** `tools` of a request, and their text for a lossless rendering. */
export function decodeTools(body: Fields, json: string): { readonly list: ToolList; readonly toolsJson: string | undefined } {
  const list = new ToolList()
  const items = toolItems(body['tools'], json)
  for (const { fields, path, text } of items) {
    const type = readString(fields['type'], `${path}.type`)
    if (type === 'function' || type === 'custom') {
      const at = `${path}.${type}`
      list.add({
        fields: readObject(fields[type], at),
        path: at,
        text,
        schemaPath: ['function', 'parameters'],
        isCustom: type === 'custom',
      })
    } else list.addHosted(type, fields)
  }
  const isAsWritten = list.tools.length > 0 && list.tools.length === items.length && list.customTools.size === 0
  return { list, toolsJson: isAsWritten ? memberText(json, 'tools') : list.json() }
}

/** Reads the name in a reference such as `{type: 'function', function: {name}}`. */
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
