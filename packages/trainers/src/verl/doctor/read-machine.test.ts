import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readMachine } from './read-machine.ts'

it('reads memory, disks of folders that are still to be made, and a Ray cluster only while it answers', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-machine-'))
  const server = createServer().listen(0, '127.0.0.1')
  try {
    await new Promise((listening) => server.once('listening', listening))
    const { port } = server.address() as { port: number }
    await mkdir(join(folder, 'ray'))
    await writeFile(join(folder, 'ray/ray_current_cluster'), `127.0.0.1:${port}\n`)
    const read = () => readMachine({ env: { RAY_TMPDIR: folder, RAY_ADDRESS: '' }, directory: join(folder, 'not/yet') })
    const machine = await read()
    expect(machine).toMatchObject({ rayAddress: null, runningRay: `127.0.0.1:${port}`, disk: { path: join(folder, 'not/yet') } })
    expect(machine.disk.freeBytes).toBeGreaterThan(0)
    expect(machine.memoryBytes).toBeLessThanOrEqual(totalmem())
    await new Promise((closed) => server.close(closed))
    expect((await read()).runningRay).toBeNull()
  } finally {
    server.close()
    await rm(folder, { recursive: true, force: true })
  }
})
