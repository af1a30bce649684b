import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { warmUp } from '../../examples/periodic-table/warm-up.ts'

const shipped = fileURLToPath(new URL('../../examples/periodic-table/model', import.meta.url))

async function digests(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).sort()
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [
        name,
        createHash('sha256')
          .update(await readFile(join(folder, name)))
          .digest('hex'),
      ]),
    ),
  )
}

describe('the warm-up checkpoint', () => {
  it('is at most 1 MB', async () => {
    expect((await stat(join(shipped, 'model.safetensors'))).size).toBeLessThanOrEqual(1_000_000)
  })

  it('is made again byte for byte in plain SIMD, whatever the number of threads', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'aworld-train-warm-up-'))
    try {
      await warmUp({
        directory: join(folder, 'model'),
        seed: 1,
        simd: 'plain',
        threads: 2,
        signal: new AbortController().signal,
        onProgress() {},
      })
      expect(await digests(join(folder, 'model'))).toEqual(await digests(shipped))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }, 600_000)
})
