import type { Sandbox } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConnectOptions, callTool, connectClient, openLease, openTestServer, request, type TestServer } from './open-test-server.ts'

/** Tests of workspaces as agents see them through MCP, on any tier. */
export function describeLeasedShells(tier: string, open: () => Promise<Sandbox>): void {
  describe(`shells of leases: ${tier}`, () => {
    let server: TestServer
    const cleanups: (() => Promise<void>)[] = []
    beforeAll(async () => {
      const sandbox = await open()
      server = await openTestServer({ sandbox })
      cleanups.push(sandbox.close, server.close)
    })
    afterAll(async () => {
      for (const cleanup of cleanups.reverse()) await cleanup()
    })

    async function connect(options: ConnectOptions) {
      const client = await connectClient(server.url, options)
      cleanups.push(() => client.close())
      return (command: string, signal?: AbortSignal) =>
        signal
          ? client.callTool({ name: 'desk-server__execute', arguments: { command } }, { signal }).then(String)
          : callTool(client, 'desk-server__execute', { command })
    }

    const lease = (rollout: string) => openLease(server, { rollout })

    it('rollouts share no file, agents of one share its files and no shell', async () => {
      const [a, b] = [await lease('a'), await lease('b')]
      await request(server, 'PUT', `/v1/leases/${a.id}/files/task.txt`, Buffer.from('how many figs\n'))
      const [first, second] = [
        await connect({ token: a.token, headers: { SESSION_ID: 'a.first' } }),
        await connect({ token: a.token, headers: { SESSION_ID: 'a.second' } }),
      ]
      expect(await first('mkdir deep && cd deep && word=fig && echo $word > note')).toBe('')
      expect(await first('pwd; echo $word')).toBe('/workspace/deep\nfig\n')
      expect(await second('pwd; echo "[$word]"; cat deep/note task.txt')).toBe('/workspace\n[]\nfig\nhow many figs\n')
      const other = await connect({ token: b.token })
      expect(await other('ls -A')).toBe('')
    })

    it('the least quota is enough for a pipeline, and its output says what was left out', async () => {
      const quota = { memoryBytes: 64 * 2 ** 20, diskBytes: 2 ** 20, processes: 16, cpuSeconds: 1, outputBytes: 1_024 }
      const { id, token } = await openLease(server, { rollout: 'least', quota })
      expect((await request(server, 'PUT', `/v1/leases/${id}/files/task.txt`, Buffer.from('fig\n'))).status).toBe(204)
      const run = await connect({ token })
      expect(await run('cat task.txt | tr f p | sort')).toBe('pig\n')
      expect(await run('seq 1000')).toMatch(/^1\n[\s\S]*\n\[2869 bytes left out\]\n[\s\S]*\n1000\n$/)
    })

    it('a command that is cancelled is over, and the shell goes on', async () => {
      const run = await connect({ token: server.connectionToken, headers: { SESSION_ID: 'cancelled' } })
      await run('word=fig')
      const controller = new AbortController()
      const call = run('sleep 60', controller.signal).catch(() => 'cancelled')
      await expect.poll(() => server.status().leases.find(({ rollout }) => rollout === 'cancelled')?.running).toBe(1)
      controller.abort()
      expect(await call).toBe('cancelled')
      await expect.poll(() => server.status().leases.find(({ rollout }) => rollout === 'cancelled')?.running).toBe(0)
      expect(await run('echo $word')).toBe('fig\n')
    })
  })
}
