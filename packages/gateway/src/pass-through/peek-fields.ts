import { scanMembers } from '../json/scan-members.ts'

/** Fields of a request that decide how it is passed on; `undefined` where one is missing or of another type. */
export interface PeekedFields {
  readonly model?: string | undefined
  readonly stream?: boolean | undefined
  /** The smaller of the two names that the field has. */
  readonly maxTokens?: number
  /** Alternatives to each sampled token; absent where none are asked for, NaN where the value is no number. */
  readonly topLogprobs?: number
  /** Completions asked for. */
  readonly n?: number | undefined
  /** A field has the server forbid tokens: its logprobs are then of another distribution than the policy's. */
  readonly constrained?: boolean
  /** `tool_choice` is `allowed_tools`. */
  readonly choosesAmong?: boolean
}

/** Fields by which vLLM 0.32 and SGLang 0.5 constrain decoding, whatever their value but null. */
const grammars: ReadonlySet<string> = new Set(['structured_outputs', 'json_schema', 'regex', 'ebnf', 'structural_tag'])
const names: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'top_logprobs',
  'n',
  'tool_choice',
  'response_format',
])
const isNamed = (name: string) => names.has(name) || isGrammar(name)
const isGrammar = (name: string) => grammars.has(name) || name.startsWith('guided_')
const none = Number.POSITIVE_INFINITY

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

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

const limit = (value: unknown) => (typeof value === 'number' && value >= 1 ? Math.floor(value) : none)

/** Reads a few scalars of a JSON body and parses nothing else; the last of equal names counts. */
export function peekFields(body: Buffer): PeekedFields {
  const fields: { -readonly [Name in keyof PeekedFields]: PeekedFields[Name] } = {}
  let either = none
  let other = none
  let top = 0
  let among = false
  let constraints: Set<string> | null = null
  for (const { name, start, end } of scanMembers(body.toString('latin1'), isNamed)) {
    const value = parse(body.toString('utf8', start, end))
    if (name === 'model') fields.model = typeof value === 'string' && value !== '' ? value : undefined
    else if (name === 'stream') fields.stream = typeof value === 'boolean' ? value : undefined
    else if (name === 'n') fields.n = typeof value === 'number' ? value : undefined
    else if (name === 'top_logprobs') top = value === null ? 0 : Number.isFinite(value) ? (value as number) : Number.NaN
    else if (name === 'max_tokens') either = limit(value)
    else if (name === 'max_completion_tokens') other = limit(value)
    else {
      if (name === 'tool_choice') among = isAmong(value)
      if (constrains(name, value)) constraints = (constraints ?? new Set()).add(name)
      else constraints?.delete(name)
    }
  }
  const maxTokens = Math.min(either, other)
  if (maxTokens !== none) fields.maxTokens = maxTokens
  if (top !== 0) fields.topLogprobs = top
  if (among) fields.choosesAmong = true
  if (constraints && constraints.size > 0) fields.constrained = true
  return fields
}
