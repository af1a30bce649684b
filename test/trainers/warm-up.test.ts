import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { WarmUpRequest } from 'aworld-train'
import { describe, expect, it } from 'vitest'
import { warmUp } from '../../examples/periodic-table/warm-up.ts'
import { lead, reader } from '../../examples/source-readers/warm-up.ts'

type WarmUp = (request: WarmUpRequest) => Promise<void>

const shippedIn = (folder: string) => fileURLToPath(new URL(`../../examples/${folder}`, import.meta.url))

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

describe.each([
  ['periodic-table/model', warmUp],
  ['source-readers/model/lead', lead],
  ['source-readers/model/reader', reader],
])('the warm-up checkpoint %s', (name, makeModel) => {
  const shipped = shippedIn(name)

  it('is at most 1 MB', async () => {
    expect((await stat(join(shipped, 'model.safetensors'))).size).toBeLessThanOrEqual(1_000_000)
  })

  // The order of sums in the learner decides the last bits of its weights, which six hundred steps carry far: its beginning is compared.
  it('is made by its script: the same files and, in plain SIMD, the same losses whatever the number of threads', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'aworld-train-warm-up-'))
    try {
      const losses = await Promise.all([1, 3].map((threads) => firstLosses(makeModel, join(folder, `${threads}`), threads)))
      expect(losses[0]).toHaveLength(20)
      expect(losses[1]).toEqual(losses[0])
      const { 'model.safetensors': _, ...files } = await digests(shipped)
      for (const threads of ['1', '3']) expect(await digests(join(folder, threads))).toMatchObject(files)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }, 600_000)
})

/** The losses of the first twenty steps of the warm-up. */
async function firstLosses(makeModel: WarmUp, directory: string, threads: number): Promise<number[]> {
  const losses: number[] = []
  const stop = new AbortController()
  const onProgress = (step: number, _steps: number, { loss }: { readonly loss?: number }) => {
    losses.push(loss!)
    if (step === 20) stop.abort()
  }
  await expect(makeModel({ directory, seed: 1, simd: 'plain', threads, signal: stop.signal, onProgress })).rejects.toThrow()
  return losses
}
