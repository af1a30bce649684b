import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { MetricsLine } from './verl-process.ts'

const metricsLine = z.object({ step: z.int(), data: z.record(z.string(), z.unknown()) })

/** The file logger of one start of verl, in a run directory; a name of its own, since verl empties the file when it opens it. */
export const metricsFileOf = (path: string, incarnation: string) => join(path, 'metrics', `${incarnation}.jsonl`)

/** `null` for what is no line of verl's file logger. */
export function parseMetricsLine(value: unknown): MetricsLine | null {
  return metricsLine.safeParse(value).data ?? null
}

/** The lines of a file that verl wrote; a torn one, and a file that is not there, are passed over. */
export function readMetrics(file: string): MetricsLine[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return parseMetricsLine(JSON.parse(line)) ?? []
      } catch {
        return []
      }
    })
}
