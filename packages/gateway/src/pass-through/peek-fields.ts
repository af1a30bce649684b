import { scanMembers } from '../json/scan-members.ts'

/** Fields of a request that decide how it is passed on; `undefined` where one is missing or of another type. */
export interface PeekedFields {
  readonly model?: string
  readonly stream?: boolean
  /** The smaller of the two names that the field has. */
  readonly maxTokens?: number
  /** Completions asked for. */
  readonly n?: number
  /** A field has the server forbid tokens: its logprobs are then of another distribution than the policy's. */
  readonly constrained?: boolean
}

/** Fields by which vLLM 0.32 and SGLang 0.5 constrain decoding, whatever their value but null. */
const grammars: ReadonlySet<string> = new Set(['structured_outputs', 'json_schema', 'regex', 'ebnf', 'structural_tag'])
const names: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
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

function isConstrained(values: Readonly<Record<string, unknown>>): boolean {
  const { tool_choice: choice, response_format: format } = values
  if (choice === 'required' || (typeof choice === 'object' && choice !== null)) return true
  if (typeof format === 'object' && format !== null && (format as { type?: unknown }).type !== 'text') return true
  return Object.entries(values).some(([name, value]) => isGrammar(name) && value !== null && value !== undefined)
}

/** Reads a few scalars of a JSON body and parses nothing else; the last of equal names counts. */
export function peekFields(body: Buffer): PeekedFields {
  const values: Record<string, unknown> = {}
  for (const { name, start, end } of scanMembers(body.toString('latin1'), isNamed)) values[name] = parse(body.toString('utf8', start, end))
  const { model, stream, n, max_tokens: either, max_completion_tokens: other } = values
  const limit = (value: unknown) => (typeof value === 'number' && value >= 1 ? Math.floor(value) : none)
  const maxTokens = Math.min(limit(either), limit(other))
  return {
    ...(typeof model === 'string' && model !== '' && { model }),
    ...(typeof stream === 'boolean' && { stream }),
    ...(maxTokens !== none && { maxTokens }),
    ...(typeof n === 'number' && { n }),
    ...(isConstrained(values) && { constrained: true }),
  }
}
