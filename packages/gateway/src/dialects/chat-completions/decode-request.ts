import type { ModelCall, RequestedConstraint, RequestedLogprobs } from '../../call.ts'
import { badRequest, unsupportedInput } from '../../failure.ts'
import { historyOddities } from '../history-oddities.ts'
import { readFormat, readStructuredOutputs } from '../read-constraint.ts'
import { type Fields, readArray, readFlag, readObject, readOptionalFlag, readPositiveInteger, readString, shown } from '../read-fields.ts'
import { readTopLogprobs } from '../token-logprobs.ts'
import { checkToolChoice } from '../tool-choice.ts'
import { requestedSampling, unusedFields } from '../unused-fields.ts'
import { decodeMessage } from './decode-message.ts'
import { decodeToolChoice, decodeTools } from './decode-tools.ts'
import { knownFields } from './known-fields.ts'

const used: ReadonlySet<string> = new Set([...knownFields, 'stop', 'response_format', 'structured_outputs'])

function decodeStop(stop: unknown): string[] {
  if (stop === undefined || stop === null) return []
  if (typeof stop === 'string') return stop === '' ? [] : [readString(stop, 'stop')]
  return readArray(stop, 'stop')
    .map((text, index) => readString(text, `stop[${index}]`))
    .filter((text) => text !== '')
}

/** Refuses requests for answers that are not text. */
function checkModalities(modalities: unknown): void {
  if (modalities === undefined || modalities === null) return
  const other = readArray(modalities, 'modalities').find((modality) => modality !== 'text')
  if (other !== undefined) throw unsupportedInput(typeof other === 'string' ? other : shown(other), 'modalities')
}

function decodeMaxTokens(body: Fields): number | null {
  const either = [
    readPositiveInteger(body['max_tokens'], 'max_tokens'),
    readPositiveInteger(body['max_completion_tokens'], 'max_completion_tokens'),
  ].filter((limit) => limit !== null)
  return either.length === 0 ? null : Math.min(...either)
}

function decodeLogprobs(body: Fields): RequestedLogprobs | null {
  const top = readTopLogprobs(body['top_logprobs'])
  if (readFlag(body['logprobs'], 'logprobs')) return { param: 'logprobs', top }
  if (top > 0) throw badRequest(`"top_logprobs" is ${top} without "logprobs"; send "logprobs": true with it.`, 'top_logprobs')
  return null
}

/** Reads `response_format`, or vLLM's own `structured_outputs`. */
function decodeConstraint(body: Fields, json: string): RequestedConstraint | undefined {
  const format = readFormat(body['response_format'], { json, path: ['response_format'], inner: 'json_schema' })
  const outputs = readStructuredOutputs(body['structured_outputs'], json)
  if (format && outputs) throw badRequest('"response_format" and "structured_outputs" ask for two forms; send one.', 'structured_outputs')
  return format ?? outputs
}

/** Reads a Chat Completions request as a model call. Unknown fields have no effect and break nothing. */
export function decodeRequest(value: unknown, json: string): ModelCall {
  const body = readObject(value, 'body')
  const items = readArray(body['messages'], 'messages')
  if (items.length === 0) throw badRequest('"messages" is empty; send at least one message.', 'messages')
  if ((body['n'] ?? 1) !== 1) throw badRequest(`"n" is ${shown(body['n'])}; a call samples one completion.`, 'n')
  for (const name of ['functions', 'function_call']) {
    if (body[name] !== undefined && body[name] !== null) throw badRequest(`"${name}" is no longer served; send "tools".`, name)
  }
  checkModalities(body['modalities'])
  const { list, toolsJson } = decodeTools(body, json)
  const messages = items.map((message, index) => decodeMessage(message, `messages[${index}]`))
  const parallel = readOptionalFlag(body['parallel_tool_calls'], 'parallel_tool_calls') ?? true
  const streamOptions = readObject(body['stream_options'] ?? {}, 'stream_options')
  return {
    model: typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : null,
    messages,
    tools: list.tools,
    toolsJson,
    customTools: list.customTools,
    hosted: list.hosted,
    toolChoice: checkToolChoice(decodeToolChoice(body['tool_choice']), list.tools, parallel, list.hostedNames),
    stream: readFlag(body['stream'], 'stream'),
    maxTokens: decodeMaxTokens(body),
    stop: decodeStop(body['stop']),
    constraint: decodeConstraint(body, json),
    oddities: historyOddities(messages),
    requestedSampling: requestedSampling(body),
    ...unusedFields(body, json, used),
    wants: {
      logprobs: decodeLogprobs(body),
      tokenIds: readFlag(body['return_token_ids'], 'return_token_ids'),
      streamUsage: readFlag(streamOptions['include_usage'], 'stream_options.include_usage'),
    },
  }
}
