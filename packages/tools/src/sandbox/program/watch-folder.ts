import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const intervalMs = 500
/** Largest share of the time that goes into looking. A folder of very many files is looked at less often. */
const share = 0.05

/** Resolves to true when a folder holds this many bytes more than at first, or to false when it is ended. Links are not followed. */
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

/** Bytes of disk that everything below a folder takes. Files that cannot be seen, or vanish, are not counted. */
async function bytesBelow(path: string): Promise<number> {
  const stat = await lstat(path).catch(() => null)
  if (!stat) return 0
  let bytes = stat.blocks * 512
  if (stat.isDirectory()) for (const name of await readdir(path).catch(() => [])) bytes += await bytesBelow(join(path, name))
  return bytes
}
