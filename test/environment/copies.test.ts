// @module-tag quick
import { LeaseCopyAnswer } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { describeCopies } from '../../packages/tools/src/testing/describe-copies.ts'
import { callTool, connectClient, openLease, openTestServer, request } from '../../packages/tools/src/testing/open-test-server.ts'
import { commandsBelowUs, sleepersOf, sleepTime, statusesOf } from './processes.ts'

const signal = new AbortController().signal
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

test('a copy keeps holes, leaves sockets out, and follows no link', async () => {
  const sandbox = await openJailed()
  try {
    const [from, to] = await Promise.all([sandbox.workspace({}, signal), sandbox.workspace({}, signal)])
    const make = 'truncate -s 1T holes; ln -s /etc/passwd file; ln -s / folder; python3 -c "$0" || true; echo 1 > one; ln one two'
    const python = 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    const profile = 'graphical'
    expect(await (await from.program({ command: ['bash', '-c', make, python], profile }, signal)).ended).toBe(0)
    await to.unpack((input) => from.pack(input, signal), signal)
    const look = 'stat -c "%n %s %b" holes; readlink file folder; ls; [ one -ef two ] && cat two'
    const { output } = await to.run({ command: ['bash', '-c', look], timeoutMs: 60_000 }, signal)
    expect(output).toBe(`holes ${2 ** 40} 0\n/etc/passwd\n/\nfile\nfolder\nholes\none\ntwo\n1\n`)
  } finally {
    await sandbox.close()
  }
})

test('what copies has no rights, ends with either workspace and with its signal, and leaves no process', async () => {
  const sandbox = await openJailed()
  try {
    const [from, to, other] = await Promise.all([1, 2, 3].map(() => sandbox.workspace({}, signal)))
    const abort = new AbortController()
    const waiting = Promise.withResolvers<void>()
    const copies = Promise.allSettled([to!.unpack(() => waiting.promise, signal), other!.unpack(() => waiting.promise, abort.signal)])
    const tars = await vi.waitUntil(() => statusesOf('tar').length === 2 && statusesOf('tar'), { timeout: 20_000 })
    for (const status of tars) expect(status).toMatch(/^CapPrm:\s+0+$.*^CapEff:\s+0+$.*^CapBnd:\s+0+$.*^NoNewPrivs:\s+1$/ms)
    await to!.close()
    abort.abort(new Error('enough'))
    expect(await copies).toMatchObject([{ reason: { message: 'The workspace is closed.' } }, { reason: { message: 'enough' } }])
    await from!.close()
    await expect(other!.unpack((input) => from!.pack(input, signal), signal)).rejects.toThrow('The workspace is closed.')
  } finally {
    await sandbox.close()
  }
  await vi.waitUntil(() => commandsBelowUs(/^(nsenter|setpriv|tar) /).length === 0, { timeout: 20_000 })
})
