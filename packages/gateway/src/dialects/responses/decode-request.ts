import type { Message } from '@aworld-train/core'
import { badRequest } from '../../failure.ts'
import { historyOddities } from '../history-oddities.ts'
import { memberText } from '../member-text.ts'
import { holdsOnly, readFormat } from '../read-constraint.ts'
import {
  type Fields,
  readArray,
  readFlag,
  readObject,
  readOptionalFlag,
  readOptionalString,
  readPositiveInteger,
  readString,
} from '../read-fields.ts'
import { readTopLogprobs } from '../token-logprobs.ts'
import { checkToolChoice, type RequestedChoice } from '../tool-choice.ts'
import { type ToolItem, ToolList, toolItems } from '../tool-list.ts'
import { requestedSampling, unusedFields } from '../unused-fields.ts'
import { decodeItems, type ItemParts } from './decode-items.ts'
import type { ResponseMemory } from './memory.ts'
import { Namespaces } from './namespaces.ts'
import type { ResponsesCall } from './responses-call.ts'

const used: ReadonlySet<string> = new Set([
  'input',
  'instructions',
  'model',
  'previous_response_id',
  'store',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'max_output_tokens',
  'include',
  'top_logprobs',
  'background',
  'conversation',
  'return_token_ids',
])

const usedWithText: ReadonlySet<string> = new Set([...used, 'text'])

/** Reads `tools` of a request. Tools of a namespace become functions, whose own names `namespaces` keeps. */
function decodeTools(items: readonly ToolItem[], list: ToolList, namespaces: Namespaces, namespace: string | null = null): void {
  for (const { fields, path, text } of items) {
    const type = readString(fields['type'], `${path}.type`)
    if (type === 'function' || type === 'custom') {
      const named = (name: string) => namespaces.flatten(namespace, name)
      list.add({ fields, path, text, schemaPath: ['parameters'], isCustom: type === 'custom', named })
    } else if (type === 'namespace' && namespace === null) {
      const name = readString(fields['name'], `${path}.name`)
      decodeTools(toolItems(fields['tools'], text, `${path}.tools`), list, namespaces, name)
    } else list.addHosted(type, fields)
  }
}

function decodeChoice(choice: unknown, hosted: ReadonlySet<string>, namespaces: Namespaces): RequestedChoice {
  const path = 'tool_choice'
  if (choice === undefined || choice === null) return { kind: 'auto' }
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { kind: choice }
  if (typeof choice === 'string') throw badRequest(`"${path}" is "${choice}"; it must be auto, none, required or an object.`, path)
  const fields = readObject(choice, path)
  const type = readString(fields['type'], `${path}.type`)
  if (type === 'function' || type === 'custom') return { kind: 'named', name: namespaces.nameIn(fields, path) }
  if (hosted.has(type)) return { kind: 'named', name: type }
  if (type !== 'allowed_tools') {
    throw badRequest(`"${path}.type" is "${type}"; it must be function, custom or allowed_tools.`, `${path}.type`)
  }
  const tools = readArray(fields['tools'], `${path}.tools`)
  const allowed = tools.map((tool, index) => {
    const at = `${path}.tools[${index}]`
    const allowedFields = readObject(tool, at)
    const allowedType = allowedFields['type']
    return typeof allowedType === 'string' && hosted.has(allowedType) ? allowedType : namespaces.nameIn(allowedFields, at)
  })
  return { kind: fields['mode'] === 'required' ? 'required' : 'auto', allowed }
}

/** The messages that come before those of the request. */
function previousMessages(body: Fields, memory: ResponseMemory): readonly Message[] {
  const id = readOptionalString(body['previous_response_id'], 'previous_response_id')
  if (id === undefined) return []
  const stored = memory.get(id)
  if (stored) return stored.messages
  const message = `Response "${id}" is not kept here: it belongs to another agent, was sent with "store": false, or was dropped. Send the whole input instead.`
  throw badRequest(message, 'previous_response_id', 400, 'previous_response_not_found')
}

function refuseUnserved(body: Fields): void {
  if (readFlag(body['background'], 'background')) {
    throw badRequest('"background" is true; an answer is sent on the connection that asked for it. Leave "background" out.', 'background')
  }
  if (body['conversation'] !== undefined && body['conversation'] !== null) {
    throw badRequest('"conversation" is not served; send the whole input, or "previous_response_id".', 'conversation')
  }
}

function decodeInclude(include: unknown): ReadonlySet<string> {
  if (include === undefined || include === null) return new Set()
  return new Set(readArray(include, 'include').map((name, index) => readString(name, `include[${index}]`)))
}

function decodeInput(input: unknown, parts: ItemParts): Message[] {
  if (input === undefined || input === null) return []
  if (typeof input === 'string') return [{ role: 'user', content: readString(input, 'input') }]
  return decodeItems(readArray(input, 'input'), 'input', parts)
}

const echoed = ['instructions', 'max_output_tokens', 'metadata', 'temperature', 'top_p', 'user'] as const

/** Writes the members of a request that every response repeats, ready to stand between braces. */
function encodeEcho(body: Fields, json: string, parallel: boolean, store: boolean): string {
  const text = (name: string, missing: string) => {
    const value = body[name]
    if (value === undefined || value === null) return missing
    return typeof value === 'object' ? (memberText(json, name) ?? missing) : JSON.stringify(value)
  }
  const members = echoed.map((name) => `"${name}":${text(name, name === 'metadata' ? '{}' : 'null')}`)
  return [
    '"background":false',
    ...members,
    `"parallel_tool_calls":${parallel}`,
    `"reasoning":${text('reasoning', '{"effort":null,"summary":null}')}`,
    `"store":${store}`,
    `"text":${text('text', '{"format":{"type":"text"}}')}`,
    `"tool_choice":${text('tool_choice', '"auto"')}`,
    `"tools":${text('tools', '[]')}`,
    '"truncation":"disabled"',
  ].join(',')
}

/** Reads a Responses request as a model call. Unknown fields have no effect and break nothing. */
export function decodeRequest(value: unknown, json: string, memory: ResponseMemory): ResponsesCall {
  const body = readObject(value, 'body')
  refuseUnserved(body)
  const list = new ToolList()
  const namespaces = new Namespaces()
  decodeTools(toolItems(body['tools'], json), list, namespaces)
  const hostedItems: string[] = []
  const messages = [...previousMessages(body, memory), ...decodeInput(body['input'], { memory, namespaces, hosted: hostedItems })]
  const instructions = readOptionalString(body['instructions'], 'instructions')
  if (messages.length === 0) throw badRequest('"input" is empty; send a text or at least one item.', 'input')
  const parallel = readOptionalFlag(body['parallel_tool_calls'], 'parallel_tool_calls') ?? true
  const store = readOptionalFlag(body['store'], 'store') ?? true
  const include = decodeInclude(body['include'])
  const top = readTopLogprobs(body['top_logprobs'])
  const reasoning = readObject(body['reasoning'] ?? {}, 'reasoning')
  readObject(body['stream_options'] ?? {}, 'stream_options')
  const text = readObject(body['text'] ?? {}, 'text')
  const summary = typeof (reasoning['summary'] ?? reasoning['generate_summary']) === 'string'
  return {
    model: typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : null,
    messages: instructions ? [{ role: 'system', content: instructions }, ...messages] : messages,
    tools: list.tools,
    toolsJson: list.json(),
    customTools: list.customTools,
    hosted: [...list.hosted, ...hostedItems],
    toolChoice: checkToolChoice(decodeChoice(body['tool_choice'], list.hostedNames, namespaces), list.tools, parallel, list.hostedNames),
    stream: readFlag(body['stream'], 'stream'),
    maxTokens: readPositiveInteger(body['max_output_tokens'], 'max_output_tokens'),
    stop: [],
    constraint: readFormat(text['format'], { json, path: ['text', 'format'] }),
    oddities: historyOddities(messages),
    requestedSampling: requestedSampling(body),
    ...unusedFields(body, json, holdsOnly(text, 'format') ? usedWithText : used),
    wants: {
      logprobs: include.has('message.output_text.logprobs') ? { param: 'include', top } : top > 0 ? { param: 'top_logprobs', top } : null,
      tokenIds: readFlag(body['return_token_ids'], 'return_token_ids'),
      streamUsage: true,
    },
    responses: {
      messages,
      namespaces,
      store,
      summary,
      sealed: include.has('reasoning.encrypted_content'),
      previous: readOptionalString(body['previous_response_id'], 'previous_response_id') ?? null,
      echo: encodeEcho(body, json, parallel, store),
    },
  }
}
