import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { isOwned } from './run-lock.ts'
import { storeWorker } from './testing/child-process.ts'
import { runRequest, temporaryFolder } from './testing/run-fixtures.ts'

test('a second process is refused with the pid of the first, and takes over when that was killed', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await using owner = storeWorker(['hold', path])
  await owner.line((line) => line === 'open')
  const locked = { code: 'STORE_LOCKED', message: expect.stringContaining(`process ${owner.process.pid}`) }
  await expect(openRunStore({ path })).rejects.toMatchObject(locked)
  await expect(openRunStore({ path })).rejects.toMatchObject(locked)
  owner.process.kill('SIGSTOP')
  await expect(openRunStore({ path })).rejects.toMatchObject(locked)
  owner.process.kill('SIGKILL')
  await owner.exited
  const store = await openRunStore({ path })
  await store.begin(runRequest('a'))
  await store.close()
})

test('a second opening in the same process is refused, and leaves the first at work', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  await expect(openRunStore({ path: folder.path })).rejects.toMatchObject({
    code: 'STORE_LOCKED',
    message: expect.stringContaining(`process ${process.pid}`),
  })
  await using other = storeWorker(['hold', folder.path])
  expect(await other.exited).toMatchObject({ code: 3 })
  expect(other.lines).toEqual([expect.stringMatching(new RegExp(`^error STORE_LOCKED .* process ${process.pid}\\.`))])
  await store.begin(runRequest('a'))
  await store.close()
  await (await openRunStore({ path: folder.path })).close()
})

test.runIf(process.platform === 'linux')('another process with the pid of the owner is not the owner', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const file = join(folder.path, 'owner.json')
  const owner = JSON.parse(await readFile(file, 'utf8')) as { bornAt: number }
  expect([owner, isOwned(folder.path)]).toMatchObject([{ pid: process.pid, bornAt: expect.any(Number) }, true])
  await writeFile(file, JSON.stringify({ ...owner, bornAt: owner.bornAt - 1 }))
  expect(isOwned(folder.path)).toBe(false)
  await store.close()
})
