import { type Message, type ToolCall, TrainError } from '@aworld-train/core'
import { readJson } from '../json/json-text.ts'
import type { ReasoningTags } from '../reasoning-tags.ts'
import type { TemplateProbe } from '../types.ts'
import { Dictionary, fromJson, type Value } from './values.ts'

/** The part of a template's probe that describes the form of its messages. */
export interface MessageForm
  extends Pick<
    TemplateProbe,
    'arguments' | 'emptyContent' | 'reasoningField' | 'idForm' | 'toolNameInResult' | 'contentParts' | 'developerRole'
  > {
  readonly reasoningTags: ReasoningTags | null
}

/** Ids of calls that the model itself sampled, by the id that the client knows. */
export type SampledIds = ReadonlyMap<string, string>

/**
 * Turns messages into what the template reads. Ids of calls are those of the prompt. Throws GATEWAY_BAD_REQUEST for
 * arguments that are not an object.
 */
export function toTemplateMessages(messages: readonly Message[], form: MessageForm, sampledIds?: SampledIds): Value[] {
  const promptIds = promptIdsOf(messages, form.idForm, sampledIds)
  return messages.map((message) => templateMessage(message, form, promptIds))
}

function templateMessage(message: Message, form: MessageForm, promptIds: PromptIds): Dictionary {
  const { toolCalls = [], reasoning } = message
  const fields = new Dictionary()
  fields.set('role', message.role === 'developer' && !form.developerRole ? 'system' : message.role)
  fields.set('content', contentOf(message, form))
  if (reasoning && (form.reasoningField === 'reasoning_content' || form.reasoningField === 'thinking')) {
    fields.set(form.reasoningField, reasoning)
  }
  for (const call of toolCalls) promptIds.answered.set(call.id, { promptId: promptIds.byCall.get(call) ?? call.id, name: call.name })
  if (toolCalls.length > 0) {
    fields.set(
      'tool_calls',
      toolCalls.map((call) => templateCall(call, form, promptIds.byCall.get(call) ?? call.id)),
    )
  }
  if (message.role === 'tool') addResultFields(fields, message, form, promptIds)
  else if (message.name !== undefined && message.role !== 'assistant') fields.set('name', message.name)
  return fields
}

function addResultFields(fields: Dictionary, message: Message, form: MessageForm, promptIds: PromptIds): void {
  const answered = message.toolCallId === undefined ? undefined : promptIds.answered.get(message.toolCallId)
  if (message.toolCallId !== undefined) fields.set('tool_call_id', answered?.promptId ?? message.toolCallId)
  const name = message.name ?? (form.toolNameInResult ? answered?.name : undefined)
  if (name !== undefined) fields.set('name', name)
}

/** The text of a message as the template gets it. */
export function contentText({ content, reasoning }: Message, { reasoningField, reasoningTags: tags }: MessageForm): string {
  const inline = reasoning && reasoningField === 'inline' && tags ? `${tags.open}\n${reasoning}\n${tags.close}\n\n` : ''
  return inline + (content ?? '')
}

function contentOf(message: Message, form: MessageForm): Value {
  const text = contentText(message, form)
  if (text === '' && message.toolCalls?.length) return form.emptyContent
  return form.contentParts ? [fieldsOf(['type', 'text'], ['text', text])] : text
}

function fieldsOf(...entries: (readonly [string, Value])[]): Dictionary {
  const fields = new Dictionary()
  for (const [name, value] of entries) fields.set(name, value)
  return fields
}

function templateCall(call: ToolCall, form: MessageForm, promptId: string): Value {
  const callArguments = form.arguments === 'object' ? argumentsObject(call) : call.arguments
  return fieldsOf(['id', promptId], ['type', 'function'], ['function', fieldsOf(['name', call.name], ['arguments', callArguments])])
}

function argumentsObject(call: ToolCall): Value {
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
  /** Calls of the messages so far, by the id that a result names. A client may use an id again in a later turn. */
  readonly answered: Map<string, { readonly promptId: string; readonly name: string }>
}

/**
 * Rendered ids of calls: the one that the model sampled, else one that depends on the position and the name of the call, so that
 * equal states give equal prompts.
 */
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
const promptIdForms: Readonly<Record<TemplateProbe['idForm'], (index: number, name: string) => string>> = {
  any: (index) => `call_${index}`,
  'alphanumeric-9': (index) => `c${String(index).padStart(8, '0')}`,
  'function-index': (index, name) => `functions.${name}:${index}`,
}

/** Every id that `messages` show in a prompt. */
export function promptIdTexts(messages: readonly Message[], form: TemplateProbe['idForm'], sampledIds?: SampledIds): string[] {
  return [...promptIdsOf(messages, form, sampledIds).byCall.values()]
}
