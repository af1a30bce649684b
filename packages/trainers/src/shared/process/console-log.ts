import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs'

export interface ConsoleLog {
  write(line: string): void
  close(): void
}

/**
 * Appends lines to `path`. A file of `maxBytes` becomes `<path>.1` and replaces the one before it, so that at most twice as much is kept.
 * If the log can no longer be written, as on a full disk, it ends; that is no reason to end a training.
 */
export function createConsoleLog(path: string, maxBytes = 64 * 1024 * 1024): ConsoleLog {
  let file: number | null = openSync(path, 'a')
  let bytes = statSync(path).size
  function rotate(open: number): number {
    closeSync(open)
    renameSync(path, `${path}.1`)
    bytes = 0
    return openSync(path, 'a')
  }
  return {
    write(line) {
      if (file === null) return
      try {
        if (bytes >= maxBytes) file = rotate(file)
        bytes += writeSync(file, `${line}\n`)
      } catch {
        closeSync(file)
        file = null
      }
    },
    close() {
      if (file !== null) closeSync(file)
      file = null
    },
  }
}
