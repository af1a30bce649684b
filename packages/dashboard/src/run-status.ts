import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorRecord, RunEvent, type RunStatus } from '@aworld-train/core'
import { isOwned } from '@aworld-train/store'

const partBytes = 64 * 1024

/** The used part of a Zod schema. */
interface Schema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined }
}

/** Reads the JSON in a file of a run by its schema; `null` if it is missing, incomplete, or of another shape. */
export function readJson<T>(path: string, name: string, schema: Schema<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(readFileSync(join(path, name), 'utf8'))).data ?? null
  } catch {
    return null
  }
}

/**
 * The status of the run at `path`, with the error if it failed. It is how its last process left it, even while that still closes its files;
 * else it says whether a process works on it.
 */
export function runStatus(path: string): { status: RunStatus; error: ErrorRecord | null } {
  const last = lastEvents(path).findLast(({ type }) => type === 'run-start' || type === 'run-end')
  if (last?.type === 'run-end') return { status: last.status, error: last.error ?? null }
  return { status: isOwned(path) ? 'running' : 'interrupted', error: null }
}

/** Whole lines at the end of the event log. */
function lastEvents(path: string): RunEvent[] {
  return readPart(path, 'end')
    .split('\n')
    .flatMap((line) => toEvent(line) ?? [])
}

/** The first event of a run, which describes it. */
export function firstEvent(path: string): Extract<RunEvent, { type: 'run-start' }> | null {
  const event = toEvent(readPart(path, 'start').split('\n', 1)[0]!)
  return event?.type === 'run-start' ? event : null
}

/** Reads one end of the event log; empty if it cannot be read. */
function readPart(path: string, part: 'start' | 'end'): string {
  let file: number | undefined
  try {
    file = openSync(join(path, 'events.jsonl'), 'r')
    const bytes = Buffer.alloc(partBytes)
    const offset = part === 'start' ? 0 : Math.max(0, fstatSync(file).size - partBytes)
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, partBytes, offset))
  } catch {
    return ''
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function toEvent(line: string): RunEvent | null {
  try {
    return RunEvent.safeParse(JSON.parse(line)).data ?? null
  } catch {
    return null
  }
}
