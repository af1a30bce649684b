import type { Message } from '@aworld-train/core'
import { badRequest } from '../../failure.ts'
import { historyOddities } from '../history-oddities.ts'
import { itemTexts, memberText } from '../member-text.ts'
import { holdsOnly, readFormat } from '../read-constraint.ts'
import { readArray, readFlag, readObject, readOptionalString, readPositiveInteger, readString } from '../read-fields.ts'
import type { ResponseMemory } from '../responses/memory.ts'
import { checkToolChoice, type RequestedChoice } from '../tool-choice.ts'
import { ToolList, toolItems } from '../tool-list.ts'
import { requestedSampling, unusedFields } from '../unused-fields.ts'
import { decodeAssistantContent, decodeText, decodeUserContent } from './decode-blocks.ts'
import { type MessagesCall, openThread } from './thread.ts'

const used: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'system',
  'tools',
  'tool_choice',
  'stream',
  'stop_sequences',
  'max_tokens',
  'return_token_ids',
  'thread',
])

const usedWithOutput: ReadonlySet<string> = new Set([...used, 'output_config'])

/** `tools` of a request or of its thread, whose text is `json`. */
function decodeTools(value: unknown, json: string): ToolList {
  const list = new ToolList()
  for (const { fields, path, text } of toolItems(value, json)) {
    const type = readOptionalString(fields['type'], `${path}.type`) ?? 'custom'
    if (type === 'custom') list.add({ fields, path, text, schemaPath: ['input_schema'] })
    else list.addHosted(type, fields)
  }
  return list
}

const kinds: Readonly<Record<string, RequestedChoice['kind']>> = { auto: 'auto', any: 'required', tool: 'named', none: 'none' }

function decodeChoice(choice: unknown): { readonly choice: RequestedChoice; readonly parallel: boolean } {
  if (choice === undefined || choice === null) return { choice: { kind: 'auto' }, parallel: true }
  const fields = readObject(choice, 'tool_choice')
  const type = readString(fields['type'], 'tool_choice.type')
  const kind = Object.hasOwn(kinds, type) ? kinds[type] : undefined
  if (!kind) throw badRequest(`"tool_choice.type" is "${type}"; it must be auto, any, tool or none.`, 'tool_choice.type')
  const parallel = !readFlag(fields['disable_parallel_tool_use'], 'tool_choice.disable_parallel_tool_use')
  return { choice: kind === 'named' ? { kind, name: readString(fields['name'], 'tool_choice.name') } : { kind }, parallel }
}

function decodeMessage(value: unknown, path: string, text: () => string, hosted: string[]): Message[] {
  const fields = readObject(value, path)
  const role = readString(fields['role'], `${path}.role`)
  if (role === 'user') return decodeUserContent(fields['content'], `${path}.content`)
  if (role === 'assistant') return [decodeAssistantContent(fields['content'], `${path}.content`, text, hosted)]
  if (role === 'system') return [{ role: 'system', content: decodeText(fields['content'], `${path}.content`) }]
  throw badRequest(`"${path}.role" is "${role}"; it must be one of user, assistant, system.`, `${path}.role`)
}

function decodeStop(stop: unknown): string[] {
  if (stop === undefined || stop === null) return []
  return readArray(stop, 'stop_sequences')
    .map((text, index) => readString(text, `stop_sequences[${index}]`))
    .filter((text) => text !== '')
}

/** Looks up the texts of the messages in `json`, once one is needed. */
function messageTexts(json: string): (index: number) => string {
  let texts: readonly string[] | undefined
  return (index) => {
    texts ??= itemTexts(memberText(json, 'messages') ?? '[]')
    return texts[index] ?? '{}'
  }
}

/** Reads a Messages request as a model call. Unknown fields have no effect and break nothing; `max_tokens` may be missing. */
export function decodeRequest(value: unknown, json: string, memory: ResponseMemory): MessagesCall {
  const body = readObject(value, 'body')
  const items = readArray(body['messages'], 'messages')
  if (items.length === 0) throw badRequest('"messages" is empty; send at least one message.', 'messages')
  const thread = openThread(body, json, memory)
  const { system: givenSystem, tools: givenTools } = thread?.fields ?? body
  const system = decodeText(givenSystem, 'system')
  const textOf = messageTexts(json)
  const hostedBlocks: string[] = []
  const added = items.flatMap((message, index) => decodeMessage(message, `messages[${index}]`, () => textOf(index), hostedBlocks))
  const messages = thread ? [...thread.messages, ...added] : added
  const list = decodeTools(givenTools, thread?.json ?? json)
  const { choice, parallel } = decodeChoice(body['tool_choice'])
  const output = readObject(body['output_config'] ?? {}, 'output_config')
  const constraint = readFormat(output['format'], { json, path: ['output_config', 'format'] })
  return {
    model: typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : null,
    messages: system === '' ? messages : [{ role: 'system', content: system }, ...messages],
    tools: list.tools,
    toolsJson: list.json(),
    customTools: list.customTools,
    hosted: [...list.hosted, ...hostedBlocks],
    toolChoice: checkToolChoice(choice, list.tools, parallel, list.hostedNames),
    stream: readFlag(body['stream'], 'stream'),
    maxTokens: readPositiveInteger(body['max_tokens'], 'max_tokens'),
    stop: decodeStop(body['stop_sequences']),
    constraint: constraint && { ...constraint, strict: true },
    oddities: historyOddities(messages),
    requestedSampling: requestedSampling(body),
    ...unusedFields(body, json, holdsOnly(output, 'format') ? usedWithOutput : used),
    thread: thread && { messages, json: thread.json },
    wants: { logprobs: null, tokenIds: readFlag(body['return_token_ids'], 'return_token_ids'), streamUsage: true },
  }
}
