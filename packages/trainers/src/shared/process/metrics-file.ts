import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MetricsLine } from '@aworld-train/core'
import { z } from 'zod'

const metricsLine = z.object({ step: z.int(), data: z.record(z.string(), z.unknown()) })

/**
 * The metrics file of one start of a trainer, in a run directory. Each start has its own, because a logger may
 * empty the file when it opens it.
 */
export const metricsFileOf = (path: string, incarnation: string) => join(path, 'metrics', `${incarnation}.jsonl`)

/** Reads a line of metrics; `null` for anything else. */
export function parseMetricsLine(value: unknown): MetricsLine | null {
  return metricsLine.safeParse(value).data ?? null
}

/** Reads the lines of a file that a trainer wrote. Torn lines and a missing file are skipped. */
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

/** The finite numbers of a line. */
export function numbersOf(data: MetricsLine['data']): Record<string, number> {
  return Object.fromEntries(Object.entries(data).filter((entry): entry is [string, number] => Number.isFinite(entry[1])))
}
