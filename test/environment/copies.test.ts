// @module-tag quick
import { LeaseCopyAnswer } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test } from 'vitest'
import { describeCopies } from '../../packages/tools/src/testing/describe-copies.ts'
import { callTool, connectClient, openLease, openTestServer, request } from '../../packages/tools/src/testing/open-test-server.ts'
import { sleepersOf, sleepTime } from './processes.ts'

const openJailed = () => openSandbox({ tier: 'bubblewrap' })

describeCopies('bubblewrap', openJailed)

test('the shells of a copy go on in the folders and with the variables of those of the same agents, and nothing in the background does', async () => {
  const sandbox = await openJailed()
  const server = await openTestServer({ sandbox })
  const time = sleepTime(7)
  const run = async (token: string, session: string, command: string) => {
    const client = await connectClient(server.url, { token, headers: { SESSION_ID: session } })
    return await callTool(client, 'desk-server__execute', { command }).finally(() => client.close())
  }
  // A copy of one moment has at most one place where a record is followed by that of the round before.
  const writer = `n = 0
with open("big", "w+b") as f:
    while True:
        f.seek(0)
        for _ in range(100):
            f.write(b"%08d\\n" % n * 10_000)
        n += 1
`
  const check = `d = open("big", "rb").read().split()
steps = [int(a) - int(b) for a, b in zip(d, d[1:]) if a != b]
print(len(d), steps in ([], [1]))
`
  try {
    const source = await openLease(server, { rollout: 'source' })
    await run(
      source.token,
      'source.0.planner',
      `mkdir -p 'a b'; cd 'a b'; export word="it's fig"; list=(1 '2 3'); declare -A ages=([fig]=7); PATH=$PATH:/workspace`,
    )
    for (const [name, text] of Object.entries({ writer, check }))
      await request(server, 'PUT', `/v1/leases/${source.id}/files/data/${name}.py`, Buffer.from(text))
    await run(source.token, 'source.0.worker', `sleep ${time} & cd data; python3 writer.py & sleep 2`)
    const response = await request(server, 'POST', `/v1/leases/${source.id}/copies`, { version: 1, rollout: 'copy', attempt: 3 })
    const copy = LeaseCopyAnswer.parse(await response.json())
    expect(copy.notCopied).toHaveLength(1)
    expect(
      await run(copy.token, 'copy.3.planner', `pwd; echo "$word|\${list[1]}|\${ages[fig]}|\${PATH##*:}"; bash -c 'echo "$word"'`),
    ).toBe("/workspace/a b\nit's fig|2 3|7|/workspace\nit's fig\n")
    expect(await run(copy.token, 'copy.3.worker', 'pwd; python3 check.py; jobs; ls -A /tmp')).toMatch(/^\/workspace\/data\n1000000 True\n$/)
    expect(sleepersOf(time)).toHaveLength(1)
    const rounds = (await run(source.token, 'source.0.worker', 'head -c 8 big; sleep 1; echo; head -c 8 big; ls -A /tmp')).split('\n')
    expect(Number(rounds[1])).toBeGreaterThan(Number(rounds[0]))
    expect(rounds).toHaveLength(2)
  } finally {
    await server.close()
    await sandbox.close()
  }
})

test('a workspace with a file that cannot be read, or without room for the state of its shell, is copied not at all', async () => {
  const sandbox = await openJailed()
  const server = await openTestServer({ sandbox })
  try {
    const source = await openLease(server, { rollout: 'source', quota: { diskBytes: 2 ** 20 } })
    const client = await connectClient(server.url, { token: source.token })
    await callTool(client, 'desk-server__execute', { command: 'echo 1 > secret; chmod 000 secret; mkfifo pipe' })
    const copy = () => request(server, 'POST', `/v1/leases/${source.id}/copies`, { version: 1, rollout: 'copy', attempt: 0 })
    expect(await (await copy()).json()).toMatchObject({
      error: { code: 'LEASE_INVALID', message: expect.stringContaining('could not be copied') },
    })
    expect(server.status().leases).toHaveLength(1)
    await callTool(client, 'desk-server__execute', { command: 'chmod 600 secret; cat /dev/zero > /tmp/full 2> /dev/null' })
    expect(await (await copy()).json()).toMatchObject({ error: { code: 'LEASE_INVALID', message: expect.stringContaining('may be full') } })
    await callTool(client, 'desk-server__execute', { command: 'rm /tmp/full' })
    expect((await copy()).status).toBe(200)
    await client.close()
  } finally {
    await server.close()
    await sandbox.close()
  }
})
