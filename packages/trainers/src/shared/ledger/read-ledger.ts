import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const count = z.int().min(0)

const sampledLine = z.object({
  key: z.string(),
  id: z.union([z.string(), z.number()]).transform(String),
  version: z.int().nullable(),
  tokens: count,
})
const trainedLine = z.object({
  step: z.int(),
  keys: z.array(z.object({ key: z.string(), rows: count, maskTokens: count })),
  rowsPadded: count,
  maxLogprobDifference: z.number().nullable(),
})
const undeliveredLine = z.object({ key: z.string(), tokens: count, reason: z.string() })
const engineLine = z.object({ tokens: count })

/** One answer of an engine, counted by the process that received it from the framework. */
export type SampledLine = Readonly<z.output<typeof sampledLine>>

/**
 * One training batch, counted on the framework's own tensors. `maxLogprobDifference` is |rollout − actor| over tokens with mask 1, and
 * `null` if it was not measured.
 */
export type TrainedLine = Readonly<z.output<typeof trainedLine>>

/** Tokens of one answer that no model call of the agent received: `aborted`, `rollout-closed` or `connection-lost`. */
export type UndeliveredLine = Readonly<z.output<typeof undeliveredLine>>

/** The records of one start in `ledger/<incarnation>`. */
export interface IncarnationLedger {
  readonly incarnation: string
  readonly sampled: readonly SampledLine[]
  readonly trained: readonly TrainedLine[]
  /** Tokens that are also in `sampled`. */
  readonly undelivered: readonly UndeliveredLine[]
  /** Tokens that the engines of a run on the processor counted themselves; `null` if no engine counts. */
  readonly engineTokens: number | null
}

/**
 * Reads the files that the bridge wrote below a run directory. A missing folder counts as empty, and a last line that a kill cut off is
 * left out.
 */
export function readLedger(path: string, incarnation: string): IncarnationLedger {
  const directory = join(path, 'ledger', incarnation)
  const names = listed(directory)
  const read = <T>(prefix: string, schema: z.ZodType<T>) =>
    names.filter((name) => name.startsWith(prefix) && name.endsWith('.jsonl')).flatMap((name) => readLines(join(directory, name), schema))
  const engine = read('engine-', engineLine)
  return {
    incarnation,
    sampled: read('sampled-', sampledLine),
    trained: read('trained-', trainedLine),
    undelivered: read('undelivered-', undeliveredLine),
    engineTokens: engine.length === 0 ? null : engine.reduce((sum, { tokens }) => sum + tokens, 0),
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory).sort()
  } catch {
    return []
  }
}

function readLines<T>(file: string, schema: z.ZodType<T>): T[] {
  const lines: T[] = []
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    try {
      lines.push(schema.parse(JSON.parse(line)))
    } catch {}
  }
  return lines
}
