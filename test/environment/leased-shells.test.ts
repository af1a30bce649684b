// @module-tag quick
import { LeaseAnswer } from '@aworld-train/core'
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect, test, vi } from 'vitest'
import { describeLeasedShells } from '../../packages/tools/src/testing/describe-leased-shells.ts'
import { callTool, connectClient, leaseOpen, openTestServer, request } from '../../packages/tools/src/testing/open-test-server.ts'
import { childOfOurs, sleepersOf, sleepTime } from './processes.ts'

describeLeasedShells('bubblewrap', () => openSandbox({ tier: 'bubblewrap' }))

test('a jail that is killed ends its lease for good, and that of no other', async () => {
  const sandbox = await openSandbox({ tier: 'bubblewrap' })
  const server = await openTestServer({ sandbox })
  const open = async (rollout: string) => {
    const answer = await request(server, 'POST', '/v1/leases', { ...leaseOpen, rollout })
    return [answer.status, (await answer.json()) as unknown] as const
  }
  const client = async (rollout: string) => connectClient(server.url, { token: LeaseAnswer.parse((await open(rollout))[1]).token })
  const [killed, other] = [await client('killed'), await client('other')]
  try {
    const time = sleepTime(8)
    await callTool(killed, 'desk-server__execute', { command: `sleep ${time} &` })
    await callTool(other, 'desk-server__execute', { command: 'word=fig' })
    process.kill(childOfOurs(sleepersOf(time)[0]!), 'SIGKILL')
    await vi.waitUntil(() => sleepersOf(time).length === 0, { timeout: 60_000 })
    const died = expect.objectContaining({ code: 'TOOL_SERVER_DIED' })
    await expect(callTool(killed, 'desk-server__execute', { command: 'pwd' })).rejects.toMatchObject({ data: died })
    await expect(callTool(killed, 'notes-server__append', { text: '1' })).rejects.toMatchObject({ data: died })
    expect(await open('killed')).toEqual([410, { error: died }])
    expect(await callTool(other, 'desk-server__execute', { command: 'echo $word' })).toBe('fig\n')
  } finally {
    await Promise.all([killed.close(), other.close()])
    await server.close()
    await sandbox.close()
  }
})
