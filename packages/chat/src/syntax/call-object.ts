import { type JsonMember, type JsonNode, readJson } from '../json/json-text.ts'
import type { ParsedCall } from './syntax.ts'

/**
 * Parses one JSON object that is a call. Accepted variants: `parameters` for `arguments`, arguments as a JSON string, a `function` wrapper,
 * and no arguments, also as `null` or empty text. Anything else that is not strict JSON, such as a comma before a closing bracket, is
 * refused, so that malformed output is never rewarded.
 */
export function parseCallObject(text: string, rule: 'needs-arguments' | 'any' = 'any'): ParsedCall | null {
  const node = tryJson(text)
  return node && callOf(node, rule)
}

/** Parses a JSON array of such objects. */
export function parseCallList(text: string): readonly ParsedCall[] | null {
  const node = tryJson(text)
  if (node?.kind !== 'array' || node.items.length === 0) return null
  const calls = node.items.map((item) => callOf(item, 'any'))
  return calls.every((call) => call !== null) ? calls : null
}

/** The text itself if it is a JSON object, else `null`. */
function objectText(text: string): string | null {
  return tryJson(text)?.kind === 'object' ? text.trim() : null
}

/** Parses text that consists of arguments. Blank text and `null` are no arguments. Returns `null` if they are no JSON object. */
export function argumentsText(text: string): string | null {
  return ['', 'null'].includes(text.trim()) ? '{}' : objectText(text)
}

/** The JSON text of an object whose values are JSON text. */
export function objectOf(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}: ${value}`).join(', ')}}`
}

export function tryJson(text: string): JsonNode | null {
  try {
    return readJson(text)
  } catch {
    return null
  }
}

function callOf(node: JsonNode, rule: 'needs-arguments' | 'any'): ParsedCall | null {
  if (node.kind !== 'object') return null
  const wrapped = node.members.get('function')?.node
  const { members } = wrapped?.kind === 'object' ? wrapped : node
  const name = (members.get('name') ?? members.get('tool_name'))?.node
  if (name?.kind !== 'string' || name.value === '') return null
  const argumentsValue = members.get('arguments') ?? members.get('parameters')
  if (argumentsValue === undefined && rule === 'needs-arguments') return null
  const argumentsText = argumentsValue === undefined ? '{}' : argumentsOf(argumentsValue)
  if (argumentsText === null) return null
  const id = (node.members.get('id') ?? node.members.get('tool_call_id'))?.node
  return { name: name.value, arguments: argumentsText, ...(id?.kind === 'string' && id.value !== '' && { promptId: id.value }) }
}

function argumentsOf({ node, text }: JsonMember): string | null {
  if (node.kind === 'object') return text
  return argumentsText(node.kind === 'string' ? node.value : text)
}
