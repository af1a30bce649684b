import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { join, relative } from 'node:path'
import { isRunning, type RunStatus } from '@aworld-train/core'
import type { RunEvent, RunReport } from '@aworld-train/protocol'

const tailBytes = 64 * 1024

/** The JSON in a file of a run; `null` where it is not there or not whole. */
export function readJson<T>(path: string, name: string): T | null {
  try {
    return JSON.parse(readFileSync(join(path, name), 'utf8')) as T
  } catch {
    return null
  }
}

/** A path as a command in this folder is typed with it; a file that is handed on says nothing of the folders above. */
export function shownPath(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? path : short
}

/** How the run at `path` is getting on: what its report says, else its owner, else how its last process left it. */
export function runStatus(path: string): RunStatus {
  const owner = readJson<{ pid: number }>(path, 'owner.json')
  if (owner && isRunning(owner.pid)) return 'running'
  const report = readJson<RunReport>(path, 'report.json')
  if (report) return report.status
  const last = lastEvents(path).findLast(({ type }) => type === 'run-start' || type === 'run-end')
  return last?.type === 'run-end' ? last.status : 'interrupted'
}

/** Whole lines at the end of the event log. */
function lastEvents(path: string): RunEvent[] {
  let file: number
  try {
    file = openSync(join(path, 'events.jsonl'), 'r')
  } catch {
    return []
  }
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.alloc(Math.min(size, tailBytes))
    readSync(file, bytes, 0, bytes.length, size - bytes.length)
    return bytes
      .toString()
      .split('\n')
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as RunEvent]
        } catch {
          return []
        }
      })
  } finally {
    closeSync(file)
  }
}

/** The first event of a run, which says what it is. */
export function firstEvent(path: string): Extract<RunEvent, { type: 'run-start' }> | null {
  let file: number
  try {
    file = openSync(join(path, 'events.jsonl'), 'r')
  } catch {
    return null
  }
  try {
    const bytes = Buffer.alloc(tailBytes)
    const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0))
    const event = JSON.parse(text.slice(0, text.indexOf('\n'))) as RunEvent
    return event.type === 'run-start' ? event : null
  } catch {
    return null
  } finally {
    closeSync(file)
  }
}
