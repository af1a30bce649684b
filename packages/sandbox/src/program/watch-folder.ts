import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const intervalMs = 500
/** Of the time, at most this part goes into looking: a folder of very many files is looked at less often. */
const share = 0.05

/** Resolves when a folder holds so many bytes more than at first, or with false when it is ended. Links are not followed. */
export async function fillsFolder(folder: string, bytes: number, ended: AbortSignal): Promise<boolean> {
  const before = await bytesBelow(folder)
  while (!ended.aborted) {
    const began = performance.now()
    if ((await bytesBelow(folder)) > before + bytes) return true
    const pauseMs = Math.max(intervalMs, (performance.now() - began) / share)
    await sleep(pauseMs, undefined, { signal: ended, ref: false }).catch(() => {})
  }
  return false
}

/** What is below a folder takes so much of its disk; what cannot be seen, or goes meanwhile, is not counted. */
async function bytesBelow(path: string): Promise<number> {
  const stat = await lstat(path).catch(() => null)
  if (!stat) return 0
  let bytes = stat.blocks * 512
  if (stat.isDirectory()) for (const name of await readdir(path).catch(() => [])) bytes += await bytesBelow(join(path, name))
  return bytes
}
