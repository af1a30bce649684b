import type { ToolDefinition } from '@aworld-train/protocol'
import type { ModelCall, ToolChoice } from '../../call.ts'
import { badRequest } from '../../failure.ts'
import { memberText } from '../member-text.ts'
import {
  checkDepth,
  type Fields,
  readArray,
  readFlag,
  readObject,
  readOptionalString,
  readPositiveInteger,
  readString,
} from '../read-fields.ts'
import { askedSampling, unusedFields } from '../unused-fields.ts'
import { decodeMessage } from './decode-message.ts'

const used: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'n',
  'logprobs',
  'stop',
  'max_tokens',
  'max_completion_tokens',
  'return_token_ids',
])

function decodeTool(value: unknown, path: string): ToolDefinition {
  const tool = readObject(value, path)
  const type = readString(tool['type'], `${path}.type`)
  if (type !== 'function') throw badRequest(`"${path}.type" is "${type}"; only "function" tools are known.`, `${path}.type`)
  const definition = readObject(tool['function'], `${path}.function`)
  const name = readString(definition['name'], `${path}.function.name`)
  const description = readOptionalString(definition['description'], `${path}.function.description`)
  const parameters = readObject(definition['parameters'] ?? {}, `${path}.function.parameters`)
  checkDepth(parameters, `${path}.function.parameters`)
  return description === undefined ? { name, parameters } : { name, description, parameters }
}

function decodeStop(stop: unknown): string[] {
  if (stop === undefined || stop === null) return []
  if (typeof stop === 'string') return stop === '' ? [] : [readString(stop, 'stop')]
  return readArray(stop, 'stop')
    .map((text, index) => readString(text, `stop[${index}]`))
    .filter((text) => text !== '')
}

function decodeToolChoice(choice: unknown, parallel: boolean): ToolChoice {
  if (choice === undefined || choice === null || choice === 'auto') return { kind: 'auto', parallel }
  if (choice === 'none') return { kind: 'none', parallel }
  throw badRequest(
    `"tool_choice" is ${JSON.stringify(choice)}; the policy is sampled without constraints, so only "auto" and "none" are known.`,
    'tool_choice',
  )
}

function decodeMaxTokens(body: Fields): number | null {
  const either = [
    readPositiveInteger(body['max_tokens'], 'max_tokens'),
    readPositiveInteger(body['max_completion_tokens'], 'max_completion_tokens'),
  ].filter((limit) => limit !== null)
  return either.length === 0 ? null : Math.min(...either)
}

/** A Chat Completions request as a model call. Fields it does not know have no effect and break nothing. */
export function decodeRequest(value: unknown, json: string): ModelCall {
  const body = readObject(value, 'body')
  const messages = readArray(body['messages'], 'messages')
  if (messages.length === 0) throw badRequest('"messages" is empty; send at least one message.', 'messages')
  if ((body['n'] ?? 1) !== 1) throw badRequest(`"n" is ${JSON.stringify(body['n'])}; a call samples one completion.`, 'n')
  for (const name of ['functions', 'function_call']) {
    if (body[name] !== undefined && body[name] !== null) throw badRequest(`"${name}" is no longer served; send "tools".`, name)
  }
  const tools = body['tools'] === undefined || body['tools'] === null ? [] : readArray(body['tools'], 'tools')
  const streamOptions = readObject(body['stream_options'] ?? {}, 'stream_options')
  return {
    model: typeof body['model'] === 'string' && body['model'] !== '' ? body['model'] : null,
    messages: messages.map((message, index) => decodeMessage(message, `messages[${index}]`)),
    tools: tools.map((tool, index) => decodeTool(tool, `tools[${index}]`)),
    toolsJson: tools.length > 0 ? memberText(json, 'tools') : undefined,
    customTools: new Set(),
    toolChoice: decodeToolChoice(body['tool_choice'], body['parallel_tool_calls'] !== false),
    stream: readFlag(body['stream'], 'stream'),
    maxTokens: decodeMaxTokens(body),
    stop: decodeStop(body['stop']),
    asked: askedSampling(body),
    ...unusedFields(body, json, used),
    wants: {
      logprobs: readFlag(body['logprobs'], 'logprobs'),
      tokenIds: readFlag(body['return_token_ids'], 'return_token_ids'),
      streamUsage: readFlag(streamOptions['include_usage'], 'stream_options.include_usage'),
    },
  }
}
