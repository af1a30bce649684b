import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { init } from './init.ts'
import { writeTarget } from './write-target.ts'

test('a place that cannot be written is named, with what to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'write-target-'))
  try {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const below = join(file, 'below')
    await expect(writeTarget(below, () => writeFile(below, 'x'))).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/file.below cannot be written: .*; name a place that is there and can be written\.$/),
    })
    const signal = new AbortController().signal
    for (const target of [below, file])
      await expect(init.run({ args: [target], options: {}, signal, output: process.stdout })).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
      })
    expect(await writeTarget(folder, () => mkdir(join(folder, 'a/b'), { recursive: true }))).toContain('a')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a full disk is not misuse, and an error of ours stays as it is', async () => {
  const enospc = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })
  await expect(writeTarget('out.jsonl', () => Promise.reject(enospc))).rejects.toMatchObject({
    code: 'STORE_FULL',
    message: 'out.jsonl could not be written: ENOSPC: no space left on device, write; free space there.',
  })
  const ours = new TrainError('STORE_CORRUPT', 'damaged')
  await expect(writeTarget('out.jsonl', () => Promise.reject(ours))).rejects.toBe(ours)
  const bug = new TypeError('x is not a function')
  await expect(writeTarget('out.jsonl', () => Promise.reject(bug))).rejects.toBe(bug)
})
