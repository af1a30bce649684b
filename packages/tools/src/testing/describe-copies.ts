import { LeaseCopyAnswer, type Sandbox } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callTool, connectClient, openLease, openTestServer, request, type TestServer } from './open-test-server.ts'

/** Tests of copies of workspaces, on any tier. */
export function describeCopies(tier: string, open: () => Promise<Sandbox>): void {
  describe(`copies: ${tier}`, () => {
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

    async function connect(token: string, session: string) {
      const client = await connectClient(server.url, { token, headers: { SESSION_ID: session } })
      cleanups.push(() => client.close())
      return (command: string) => callTool(client, 'desk-server__execute', { command })
    }
    const lease = (rollout: string) => openLease(server, { rollout })
    const copy = (id: string, rollout: string, attempt = 0) =>
      request(server, 'POST', `/v1/leases/${id}/copies`, { version: 1, rollout, attempt })
    const copied = async (id: string, rollout: string, attempt = 0) => {
      const response = await copy(id, rollout, attempt)
      expect(response.status).toBe(200)
      return LeaseCopyAnswer.parse(await response.json())
    }

    it('have the same files, modes and links, and share nothing afterwards', async () => {
      const source = await lease('source')
      const first = await connect(source.token, 'source.0.agent')
      await first(`mkdir -p deep/folder; echo fig > deep/folder/note; printf 'echo run' > script; chmod 750 script
        ln -s deep/folder/note link; echo kept > /tmp/scratch`)
      const answers = await Promise.all([copied(source.id, 'one'), copied(source.id, 'two')])
      expect(new Set([source, ...answers].flatMap(({ id, token }) => [id, token])).size).toBe(6)
      expect(answers[0].notCopied.join(' ')).toContain('background')
      const [one, two] = await Promise.all(answers.map(({ token }, index) => connect(token, `${['one', 'two'][index]}.0.agent`)))
      for (const run of [one!, two!])
        expect(await run('cd; cat deep/folder/note link /tmp/scratch; readlink link; stat -c %a script')).toBe(
          'fig\nfig\nkept\ndeep/folder/note\n750\n',
        )
      await one!('cd; echo date > deep/folder/note; rm script; echo new > new')
      expect(await first('cd; cat deep/folder/note; ls')).toBe('fig\ndeep\nlink\nscript\n')
      expect(await two!('cd; cat deep/folder/note; ls')).toBe('fig\ndeep\nlink\nscript\n')
    })

    it('are asked for once, for another rollout, of a lease that is open', async () => {
      const source = await lease('once')
      await (await connect(source.token, 'once.0.agent'))('echo 1 > number')
      const [first, second] = await Promise.all([copied(source.id, 'again'), copied(source.id, 'again')])
      const run = await connect(first.token, 'again.0.agent')
      expect(second.id).toBe(first.id)
      await run('cd; echo 2 > number')
      expect((await copied(source.id, 'again')).id).toBe(first.id)
      expect(await run('cat /workspace/number')).toBe('2\n')
      const next = await copied(source.id, 'again', 1)
      expect(next.id).not.toBe(first.id)
      expect(await (await connect(next.token, 'again.1.agent'))('cat /workspace/number')).toBe('1\n')
      const refused = async (response: Response) => [response.status, ((await response.json()) as { error: { code: string } }).error.code]
      expect(await refused(await copy(source.id, 'once', 1))).toEqual([400, 'LEASE_INVALID'])
      expect(await refused(await copy(source.id, 'again'))).toEqual([409, 'LEASE_CONFLICT'])
      expect(await refused(await copy(source.id, ' '))).toEqual([400, 'LEASE_INVALID'])
      await request(server, 'DELETE', `/v1/leases/${source.id}`)
      expect(await refused(await copy(source.id, 'late'))).toEqual([410, 'TOOL_SERVER_DIED'])
      expect(await refused(await copy('no-lease', 'late'))).toEqual([404, 'LEASE_UNKNOWN'])
      expect(await run('cat /workspace/number').catch(() => 'gone')).toBe('gone')
    })
  })
}
