import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * SHA-256 in hex over the files of a tokenizer in the order of their names' bytes: for each its name, a zero byte, its length as
 * uint64 little endian, its bytes. The bridge computes the same (`aworld_train_bridge/shared/files.py`).
 */
export function filesHash(files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash('sha256')
  const named = Array.from(files, ([name, bytes]) => ({ name: Buffer.from(name), bytes })).sort((a, b) => Buffer.compare(a.name, b.name))
  for (const { name, bytes } of named) {
    const length = Buffer.alloc(9)
    length.writeBigUInt64LE(BigInt(bytes.length), 1)
    hash.update(name).update(length).update(bytes)
  }
  return hash.digest('hex')
}

/** Writes files to `directory` atomically. Files that are already there are left as they are. */
export async function writeModelFiles(directory: string, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  const parent = join(directory, '..')
  await mkdir(parent, { recursive: true })
  const draft = await mkdtemp(join(parent, '.files-'))
  try {
    for (const [name, bytes] of files) await writeFile(join(draft, name), bytes)
    await rename(draft, directory).catch(async (error: unknown) => {
      if (!(await isFolder(directory))) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

export async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}
