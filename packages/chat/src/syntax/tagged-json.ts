import { type JsonMember, type JsonNode, readJson } from '../json/json-text.ts'
import type { ParsedCall, ToolCallSyntax } from './syntax.ts'

/** `<tool_call>` with one JSON object: Qwen 2.5 and 3, QwQ, Hermes, SmolLM3. */
export const taggedJson: ToolCallSyntax = {
  name: 'tagged-json',
  open: '<tool_call>',
  close: '</tool_call>',
  parse(body) {
    const call = parseCallObject(body)
    return call ? [call] : null
  },
  opening: (name) => `<tool_call>\n{"name":${name === null ? '' : ` ${JSON.stringify(name)}, "arguments":`}`,
}

/**
 * One JSON object that is a call. Taken as they are: `parameters` for `arguments`, arguments as a JSON string, a `function`
 * wrapper, no arguments. Anything else that is not strict JSON is refused, so that malformed output is never rewarded.
 */
export function parseCallObject(text: string): ParsedCall | null {
  let node: JsonNode
  try {
    node = readJson(text)
  } catch {
    return null
  }
  if (node.kind !== 'object') return null
  const wrapped = node.members.get('function')?.node
  const { members } = wrapped?.kind === 'object' ? wrapped : node
  const name = members.get('name')?.node
  if (name?.kind !== 'string' || name.value === '') return null
  const given = members.get('arguments') ?? members.get('parameters')
  const argumentsText = given === undefined ? '{}' : objectText(given)
  return argumentsText === null ? null : { name: name.value, arguments: argumentsText }
}

function objectText({ node, text }: JsonMember): string | null {
  if (node.kind === 'object') return text
  if (node.kind !== 'string') return null
  try {
    return readJson(node.value).kind === 'object' ? node.value : null
  } catch {
    return null
  }
}
