import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DatabaseSync } from 'node:sqlite'
import { Agent, createEnvironment, createRunners, type Episode, type TrainingTask, tool } from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createScriptedServer } from '../../packages/agent/src/scripted-server.test-support.ts'
import { answer as byHeader } from './by-header.ts'
import { took } from './reward.ts'
import { answer as bySession } from './sessions.ts'
import { agent, shop } from './shop.ts'

const never = new AbortController().signal
const call = (name: string, args: object) => ({ toolCalls: [{ id: name, name, arguments: JSON.stringify(args) }] })

it('a shop is as it was at the beginning in every attempt, and closed at its end', async () => {
  const databases = new Set<DatabaseSync>()
  const peek = tool({ name: 'peek', parameters: z.object({}), state: shop, execute: (_, { state }) => String(databases.add(state).size) })
  for (const attempt of ['1', '2']) {
    await using model = await createScriptedServer([
      call('take', { item: 'figs', count: 2 }),
      call('take', { item: 'figs', count: 2 }),
      call('left', { item: 'figs' }),
      call('peek', {}),
      { content: 'done' },
    ])
    const runners = createRunners({ policy: { baseUrl: model.baseUrl, apiKey: 'none', model: 'scripted' } })
    const { toolCalls } = await runners.run('Buy two figs.', new Agent({ tools: [...agent.tools, peek] }))
    expect(toolCalls.map(({ content }) => content)).toEqual(['took 2 figs', 'Error: there are not 2 figs', '1', attempt])
    const episode = { toolCalls } as unknown as Episode
    const answer = { version: 1, taskId: '', groundTruth: 'took 2 figs' } as const
    expect(await took.score({ task: {} as TrainingTask, episode, answer })).toBe(1)
  }
  expect([...databases].map(({ isOpen }) => isOpen)).toEqual([false, false])
})

/** Serves a handler of web requests on loopback. */
async function listen(answer: (request: Request) => Promise<Response>): Promise<string> {
  const http = createServer(async (incoming, outgoing) => {
    const body = incoming.method === 'POST' ? Buffer.concat(await incoming.toArray()) : null
    const headers = incoming.headers as Record<string, string>
    const response = await answer(new Request(new URL(incoming.url ?? '/', 'http://localhost'), { method: incoming.method, headers, body }))
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    for await (const chunk of response.body ?? []) outgoing.write(chunk)
    outgoing.end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void http.close().closeAllConnections())
  await once(http, 'listening')
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
}

it.each([
  ['by session', bySession],
  ['by header', byHeader],
])('a server over HTTP keeps its state %s: each lease counts for itself', async (_, answer) => {
  const url = await listen(answer)
  const environment = createEnvironment()
  onTestFinished(() => environment.close())
  const open = async (rollout: string, attempt: number) => {
    const lease = environment.lease({ rollout, attempt, sample: 0, task: { id: 'task' } })
    return { lease, tools: await lease.tools({ agent: 'agent', mcpConfig: { mcpServers: { counter: { url } } } }, never) }
  }
  const leases = await Promise.all([open('a', 0), open('b', 0), open('a', 1)])
  const next = async ({ tools }: (typeof leases)[number]) => (await tools.call({ name: 'next', arguments: {} }, never)).content
  expect(await Promise.all(leases.map(next))).toEqual(['1', '1', '1'])
  expect(await next(leases[0]!)).toBe('2')
  expect(await next(leases[2]!)).toBe('2')
  for (const { lease } of leases) await lease.close()
})

it('is the code that the guide shows', async () => {
  const guide = await readFile(new URL('../../docs/3.guides/stateful-environments.md', import.meta.url), 'utf8')
  for (const file of ['shop.ts', 'reward.ts', 'sessions.ts', 'by-header.ts', 'counter-server.ts']) {
    expect(guide).toContain((await readFile(new URL(file, import.meta.url), 'utf8')).trimEnd())
  }
})
