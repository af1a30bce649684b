import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ownRecording } from './own-recording.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'recording-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a recording has one owner at a time', async () => {
  const path = join(folder, 'a', 'recorded')
  const owner = await ownRecording(path)
  await expect(ownRecording(path)).rejects.toMatchObject({
    code: 'STORE_LOCKED',
    message: `The recording ${path} is in use by process ${process.pid}; stop that one, or name another folder in "recording".`,
  })
  await owner.release()
  await (await ownRecording(path)).release()
})

test('a place that can hold no folder is named, with what to do', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  for (const path of [file, join(file, 'below'), ...(process.platform === 'linux' ? ['/proc/aworld-train-recording'] : [])])
    await expect(ownRecording(path)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/^The recording cannot be kept in .*name a folder that can be written\.$/),
    })
})
