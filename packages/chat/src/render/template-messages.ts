import { type Message, type ToolCall, TrainError } from '@aworld-train/protocol'
import { readJson } from '../json/json-text.ts'
import type { ReasoningTags } from '../reasoning-tags.ts'
import type { TemplateProbe } from '../types.ts'
import { dictionary, fromJson, list, none, type RuntimeValue, string } from './runtime-values.ts'

/** How messages are handed to one template: the part of its probe that matters for that. */
export interface MessageForm
  extends Pick<
    TemplateProbe,
    'arguments' | 'emptyContent' | 'reasoningField' | 'idForm' | 'toolNameInResult' | 'contentParts' | 'developerRole'
  > {
  readonly reasoningTags: ReasoningTags | null
}

type Entry = [string, RuntimeValue]

/** Ids of calls that the model itself sampled, by the id that the client knows. */
export type SampledIds = ReadonlyMap<string, string>

/** Messages as the template reads them. Ids of calls are those of the prompt. Throws GATEWAY_BAD_REQUEST for arguments that are not an object. */
export function toTemplateMessages(messages: readonly Message[], form: MessageForm, sampledIds?: SampledIds): RuntimeValue {
  const promptIds = promptIdsOf(messages, form.idForm, sampledIds)
  return list(messages.map((message) => dictionary(entriesOf(message, form, promptIds))))
}

function* entriesOf(message: Message, form: MessageForm, promptIds: PromptIds): Generator<Entry> {
  const { toolCalls = [], reasoning } = message
  yield ['role', string(message.role === 'developer' && !form.developerRole ? 'system' : message.role)]
  yield ['content', contentOf(message, form)]
  if (reasoning && (form.reasoningField === 'reasoning_content' || form.reasoningField === 'thinking')) {
    yield [form.reasoningField, string(reasoning)]
  }
  for (const call of toolCalls) promptIds.answered.set(call.id, { promptId: promptIds.byCall.get(call) ?? call.id, name: call.name })
  if (toolCalls.length > 0) {
    yield ['tool_calls', list(toolCalls.map((call) => templateCall(call, form, promptIds.byCall.get(call) ?? call.id)))]
  }
  if (message.role === 'tool') yield* toolResultEntries(message, form, promptIds)
  else if (message.name !== undefined && message.role !== 'assistant') yield ['name', string(message.name)]
}

function* toolResultEntries(message: Message, form: MessageForm, promptIds: PromptIds): Generator<Entry> {
  const answered = message.toolCallId === undefined ? undefined : promptIds.answered.get(message.toolCallId)
  if (message.toolCallId !== undefined) yield ['tool_call_id', string(answered?.promptId ?? message.toolCallId)]
  const name = message.name ?? (form.toolNameInResult ? answered?.name : undefined)
  if (name !== undefined) yield ['name', string(name)]
}

function contentOf(message: Message, form: MessageForm): RuntimeValue {
  const { content, reasoning, toolCalls = [] } = message
  const tags = form.reasoningTags
  const inline = reasoning && form.reasoningField === 'inline' && tags ? `${tags.open}\n${reasoning}\n${tags.close}\n\n` : ''
  const text = inline + (content ?? '')
  if (text === '' && toolCalls.length > 0) return form.emptyContent === null ? none() : string('')
  return form.contentParts ? list([dictionary([...part(text)])]) : string(text)
}

function* part(text: string): Generator<Entry> {
  yield ['type', string('text')]
  yield ['text', string(text)]
}

function templateCall(call: ToolCall, form: MessageForm, promptId: string): RuntimeValue {
  return dictionary([
    ['id', string(promptId)],
    ['type', string('function')],
    [
      'function',
      dictionary([
        ['name', string(call.name)],
        ['arguments', form.arguments === 'object' ? argumentsObject(call) : string(call.arguments)],
      ]),
    ],
  ])
}

function argumentsObject(call: ToolCall): RuntimeValue {
  try {
    const node = readJson(call.arguments.trim() === '' ? '{}' : call.arguments)
    if (node.kind === 'object') return fromJson(node)
  } catch (cause) {
    throw argumentsError(call, cause)
  }
  throw argumentsError(call, undefined)
}

function argumentsError({ id, name }: ToolCall, cause: unknown): TrainError {
  const what = `The arguments of the call ${id} of ${name} are not a JSON object`
  return new TrainError('GATEWAY_BAD_REQUEST', `${what}; send them as the model wrote them.`, { cause })
}

interface PromptIds {
  readonly byCall: ReadonlyMap<ToolCall, string>
  /** Calls of the messages handed over so far, by the id that a result names: a client may use an id again in a later turn. */
  readonly answered: Map<string, { readonly promptId: string; readonly name: string }>
}

/** Ids as rendered: the one the model sampled, else a function of the position and the name of a call, so that equal states give equal prompts. */
function promptIdsOf(messages: readonly Message[], form: TemplateProbe['idForm'], sampledIds?: SampledIds): PromptIds {
  const byCall = new Map<ToolCall, string>()
  let count = 0
  for (const { toolCalls = [] } of messages) {
    for (const call of toolCalls) {
      const promptId = sampledIds?.get(call.id) ?? promptIdForms[form](count, call.name)
      byCall.set(call, promptId)
      count += 1
    }
  }
  return { byCall, answered: new Map() }
}

/** Forms of call ids that templates accept. */
export const promptIdForms: Readonly<Record<TemplateProbe['idForm'], (index: number, name: string) => string>> = {
  any: (index) => `call_${index}`,
  'alphanumeric-9': (index) => `c${String(index).padStart(8, '0')}`,
  'function-index': (index, name) => `functions.${name}:${index}`,
}

/** Every id that `messages` show in a prompt. */
export function promptIdTexts(messages: readonly Message[], form: TemplateProbe['idForm'], sampledIds?: SampledIds): string[] {
  return [...promptIdsOf(messages, form, sampledIds).byCall.values()]
}
