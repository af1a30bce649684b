import { scanMembers } from './scan-members.ts'

/** Fields of a request that decide how it is passed on; `undefined` where one is missing or of another type. */
export interface PeekedFields {
  readonly model?: string
  readonly stream?: boolean
  /** The smaller of the two names that the field has. */
  readonly maxTokens?: number
  /** Completions asked for. */
  readonly n?: number
}

const names: ReadonlySet<string> = new Set(['model', 'stream', 'max_tokens', 'max_completion_tokens', 'n'])
const isNamed = (name: string) => names.has(name)
const none = Number.POSITIVE_INFINITY

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
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
  }
}
