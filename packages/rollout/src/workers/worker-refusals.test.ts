import { once } from 'node:events'
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import { type Message, workersPath } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createRolloutServer } from '../service/rollout-server.ts'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { clientToken, plainWorker, startCoordinator, testAgent, token } from './start-workers.test-support.ts'

/** Another agent than that of the coordinator. */
const otherAgent = (parts: Record<string, string>) => ({ agent: { hash: 'agent-2', parts: { ...testAgent.parts, ...parts } } })

test.each([
  ['a wrong token', { token: 'wrong' }, 'SERVICE_UNAUTHORIZED', /--token-env/],
  [
    'another file',
    otherAgent({ 'agent.ts': 'b' }),
    'WORKER_AGENT',
    /"worker" has another agent than its coordinator: agent.ts is another one\./,
  ],
  ['another version of a package', otherAgent({ 'package zod': '4.2.0' }), 'WORKER_AGENT', /: package zod is 4.2.0 there and 4.1.0 here\./],
  ['a file too many', otherAgent({ 'a.ts': 'a' }), 'WORKER_AGENT', /: its coordinator has no a.ts\./],
  ['a file too few', { agent: { hash: 'agent-2', parts: { 'package zod': '4.1.0' } } }, 'WORKER_AGENT', /: its worker has no agent.ts\./],
  ['a name that another has', { name: 'taken' }, 'WORKER_NAME', /another --name/],
  [
    'no coordinator',
    { url: 'http://127.0.0.1:9', waitMs: 300 },
    'COORDINATOR_UNREACHABLE',
    /127.0.0.1:9 does not answer: .*waited for 0 s.*--coordinator/,
  ],
] as const)('%s ends a worker with what to do', async (_, options, code, message) => {
  await using coordinator = await startCoordinator()
  const taken = await plainWorker(coordinator.server.url, { name: 'taken' })
  await expect(coordinator.work(options).ended).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  expect(coordinator.counts().workers).toBe(1)
  taken.socket.terminate()
})

test('another protocol, no hello, a strange message and an unknown path are refused with the reason', async () => {
  await using coordinator = await startCoordinator()
  const { url } = coordinator.server
  const older = await plainWorker(url, { protocol: 0 })
  await expect
    .poll(() => older.received)
    .toMatchObject([{ type: 'rejected', error: { code: 'WORKER_PROTOCOL', message: /speaks protocol 0/ } }])
  const strange = await plainWorker(url)
  strange.say({ type: 'leave' })
  await expect.poll(() => strange.of('error')).toMatchObject([{ message: expect.stringContaining('"leave" of the worker') }])
  const elsewhere = new WebSocket(`${url.replace('http', 'ws')}/v1/channel`, { headers: { authorization: `Bearer ${clientToken}` } })
  const [error] = await once(elsewhere, 'error')
  expect(error.message).toContain('404')
  expect(coordinator.warnings.map(({ code }) => code)).toEqual(['WORKER_PROTOCOL', 'WORKER_INVALID'])
})

test('a connection without a hello is closed and not refused, because its worker may have stood still', async () => {
  await using coordinator = await startCoordinator({ limits: { helloMs: 50 } })
  const socket = new WebSocket(coordinator.server.url.replace('http', 'ws') + workersPath, {
    headers: { authorization: `Bearer ${token}` },
  })
  const received: string[] = []
  socket.on('message', (data) => received.push(String(data)))
  const [code] = await once(socket, 'close')
  expect([code, received]).toEqual([4003, []])
  expect(coordinator.warnings).toEqual([{ code: 'WORKER_INVALID', message: expect.stringContaining('has not said hello in 50 ms') }])
})

test('the token of clients opens no path of workers, and that of workers none of clients', async () => {
  await using coordinator = await startCoordinator()
  const { url } = coordinator.server
  const socket = (path: string, bearer: string) => {
    const { hostname, port } = new URL(url)
    return new Promise<number>((resolve) => {
      const headers: OutgoingHttpHeaders = { authorization: `Bearer ${bearer}`, connection: 'Upgrade', upgrade: 'websocket' }
      const upgrade = httpRequest({
        hostname,
        port,
        path,
        headers: { ...headers, 'sec-websocket-version': '13', 'sec-websocket-key': btoa('a'.repeat(16)) },
      })
      upgrade.once('response', ({ statusCode }) => resolve(statusCode!))
      upgrade.once('upgrade', ({ statusCode }, opened) => {
        opened.destroy()
        resolve(statusCode!)
      })
      upgrade.end()
    })
  }
  const plain = async (path: string, bearer: string) => (await fetch(url + path, { headers: { authorization: `Bearer ${bearer}` } })).status
  const ofClients = ['/v1/rollouts/a', '/v1/events', '/metrics', '/v1/files/../rollouts/a']
  for (const path of ofClients) expect([path, await plain(path, token)]).toEqual([path, 401])
  expect(await plain(`/v1/files/${'0'.repeat(64)}`, clientToken)).toBe(401)
  expect(await plain(`/v1/files/${'0'.repeat(64)}`, token)).toBe(404)
  for (const path of [workersPath, '/v1/channel/../workers']) {
    expect([path, await socket(path, clientToken)]).toEqual([path, 401])
    expect([path, await socket(path, token)]).toEqual([path, 101])
  }
  // A path that begins with two slashes names no host, and is not one of the workers' paths.
  expect(await socket('//service/v1/workers', clientToken)).toBe(404)
  for (const path of ['/v1/channel', '/v1/workers/../channel', '//', '//service/v1/workers'])
    expect([path, await socket(path, token)]).toEqual([path, 401])
  const open = { service: coordinator.service, workers: { pool: coordinator.pool, token } }
  await expect(createRolloutServer({ ...open, token })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/have the same token/),
  })
  // A service on loopback that asks its clients for no token asks its workers for theirs.
  const server = await createRolloutServer(open)
  const page = new WebSocket(server.url.replace('http', 'ws') + workersPath)
  const [error] = await once(page, 'error')
  expect(error.message).toContain('401')
  await server.close()
})

test('a result above the limit fails its rollout with the reason, and nothing else of its worker', async () => {
  await using coordinator = await startCoordinator({
    limits: { maxFrameBytes: 20_000 },
    agent: async (ask, _, task) => (task === 'task-large' ? 'x'.repeat(50_000) : ask()),
  })
  const worker = coordinator.work({ slots: 2 })
  const [large, small] = await Promise.all(['large', 'small'].map((key) => coordinator.run(rolloutRequest(key))))
  expect(large).toMatchObject({
    status: 'done',
    episode: { stopReason: 'failed', reward: null, error: { code: 'WORKER_RESULT_TOO_LARGE' } },
  })
  expect(small).toMatchObject({ status: 'done', episode: { reward: 1 } })
  expect(worker.states).toEqual(['connected'])
  worker.drain()
  await worker.ended
})

test('a result that its coordinator could not read fails its rollout with the reason, and nothing else of its worker', async () => {
  await using coordinator = await startCoordinator()
  const message = { role: 'assistant', content: 'yes', refusal: null }
  const worker = coordinator.work({
    wrap: (executor) => ({
      ...executor,
      async execute(assignment, control) {
        const result = await executor.execute(assignment, control)
        return assignment.key === 'strange'
          ? { ...result, end: { kind: 'answered', answer: 'yes', messages: [message as Message] } }
          : result
      },
    }),
  })
  const [strange, other] = await Promise.all(['strange', 'other'].map((key) => coordinator.run(rolloutRequest(key))))
  expect(strange).toMatchObject({
    status: 'done',
    episode: { attempt: 0, stopReason: 'failed', error: { code: 'AGENT_FAILED', message: expect.stringContaining('refusal') } },
  })
  expect(other).toMatchObject({ status: 'done', episode: { reward: 1 } })
  expect(worker.states).toEqual(['connected'])
  worker.drain()
  await worker.ended
})
