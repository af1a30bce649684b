import { readObject } from '../dialects/read-fields.ts'
import { parseBody } from '../stages/parse-body.ts'

/** Fields of a request that decide how it is passed on; `undefined` if one is missing or of another type. */
export interface PeekedFields {
  readonly model?: string | undefined
  readonly stream?: boolean | undefined
  /** JSON of `stream_options` that asks for the usage; absent if the request asks for it itself, or for no stream. */
  readonly askForUsage?: string
  /** The smaller value of the two fields for it. */
  readonly maxTokens?: number
  /** Alternatives to each sampled token; absent if none are asked for, NaN if the value is no number. */
  readonly topLogprobs?: number
  /** Number of completions asked for. */
  readonly n?: number | undefined
  /** Whether a field makes the server forbid tokens. Its logprobs are then of another distribution than the policy's. */
  readonly constrained?: boolean
  /** Names of the tools that the request offers; absent if there are none. */
  readonly tools?: readonly string[]
  /** Whether `tool_choice` is `allowed_tools`. */
  readonly choosesAmong?: boolean
}

/** Fields by which vLLM 0.32 and SGLang 0.5 constrain decoding, whatever their value except null. */
const grammars: ReadonlySet<string> = new Set(['structured_outputs', 'json_schema', 'regex', 'ebnf', 'structural_tag'])
const isGrammar = (name: string) => grammars.has(name) || name.startsWith('guided_')
const member = (value: unknown, name: string): unknown => (value as Readonly<Record<string, unknown>> | null | undefined)?.[name]
const isAmong = (choice: unknown) => member(choice, 'type') === 'allowed_tools'

function constrains(name: string, value: unknown): boolean {
  if (value === null || value === undefined) return false
  if (name === 'tool_choice') {
    if (isAmong(value)) return member(member(value, 'allowed_tools'), 'mode') === 'required'
    return value === 'required' || typeof value === 'object'
  }
  if (name === 'response_format') return typeof value === 'object' && member(value, 'type') !== 'text'
  return isGrammar(name)
}

function toolName(tool: unknown): string {
  const name = member(member(tool, 'function') ?? tool, 'name')
  return typeof name === 'string' ? name : ''
}

/** Options that a server would refuse are passed on as they are. */
const withUsage = (options: unknown) =>
  JSON.stringify(typeof (options ?? {}) === 'object' && !Array.isArray(options) ? { ...(options as object), include_usage: true } : options)

const limit = (value: unknown) => (typeof value === 'number' && value >= 1 ? Math.floor(value) : Number.POSITIVE_INFINITY)

/**
 * Reads the fields of a JSON body. Throws GATEWAY_BAD_REQUEST if it holds no object, because its turn could not be
 * recorded even if a server accepts it.
 */
export function peekFields(body: Buffer): PeekedFields {
  const fields = readObject(parseBody(body).value, 'body')
  const {
    model,
    stream,
    stream_options: options,
    n,
    top_logprobs: top = null,
    max_tokens,
    max_completion_tokens,
    tools,
    tool_choice,
  } = fields
  const maxTokens = Math.min(limit(max_tokens), limit(max_completion_tokens))
  return {
    model: typeof model === 'string' && model !== '' ? model : undefined,
    stream: typeof stream === 'boolean' ? stream : undefined,
    ...(stream === true && member(options, 'include_usage') !== true && { askForUsage: withUsage(options) }),
    n: typeof n === 'number' ? n : undefined,
    ...(Number.isFinite(maxTokens) && { maxTokens }),
    ...(top !== null && top !== 0 && { topLogprobs: Number.isFinite(top) ? (top as number) : Number.NaN }),
    ...(Array.isArray(tools) && tools.length > 0 && { tools: tools.map(toolName) }),
    ...(isAmong(tool_choice) && { choosesAmong: true }),
    ...(Object.entries(fields).some(([name, value]) => constrains(name, value)) && { constrained: true }),
  }
}
