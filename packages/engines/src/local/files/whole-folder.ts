import { mkdtemp, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * Makes or replaces a folder so that it appears whole or not at all. `write` fills a temporary neighbour, which is then renamed. `write`
 * flushes its own files. If it rejects, nothing remains.
 */
export async function writeFolderWhole(directory: string, write: (folder: string) => Promise<void>): Promise<void> {
  const target = resolve(directory)
  const parent = dirname(target)
  const temporary = await mkdtemp(join(parent, `.${basename(target)}-`))
  const replaced = `${temporary}-replaced`
  try {
    await write(temporary)
    await flushFolder(temporary)
    const hadOld = await renameIfPresent(target, replaced)
    try {
      await rename(temporary, target)
    } catch (error) {
      if (hadOld) await rename(replaced, target)
      throw error
    }
    await flushFolder(parent)
  } finally {
    await rm(temporary, { recursive: true, force: true })
    await rm(replaced, { recursive: true, force: true })
  }
}

async function renameIfPresent(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Makes renames in a folder durable; Windows cannot open folders and does not need it. */
async function flushFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
