import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import type { HealthSample } from '@aworld-train/core'
import { createHttpRuns } from '@aworld-train/dashboard'
import { readEvents, readRun } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createToyVllm } from '../../../engines/src/remote/testing/vllm-server.ts'
import { runServer } from './run-server.ts'

test('the recording has the servers of a model, the rollouts under way, and how late the event loop was', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'serve health '))
  const stop = new AbortController()
  const servers = [await createToyVllm(), await createToyVllm()]
  const shown = Promise.withResolvers<string>()
  const slow =
    'export default (_task, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))\n'
  await writeFile(join(directory, 'slow.ts'), slow)
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const limits = { probeIntervalMs: 20, unavailableMs: 300 }
  const policy = { kind: 'vllm', urls: servers.map(({ url }) => url), folder: './model', served: 'toy', limits }
  const config = {
    gateway: { port: 0 },
    models: { policy },
    clients: null,
    recording: 'recorded',
    drainMs: 100,
    rollouts: { port: 0, agent: './slow.ts', concurrency: 1 },
  }
  const file = join(directory, 'serve.yaml')
  await writeFile(file, JSON.stringify(config))
  const ended = runServer({ file, dashboard: true, signal: stop.signal, write: shown.resolve })
  onTestFinished(async () => {
    stop.abort()
    await ended
    await Promise.all(servers.map((server) => server.close()))
    await rm(directory, { recursive: true })
  })
  const text = await Promise.race([shown.promise, ended.then(() => '')])
  const url = /rollouts +(\S+)/.exec(text)![1]!
  for (const key of ['a', 'b']) {
    const task = { version: 1, id: key, hash: key, input: 'Go on.', data: {}, dataSource: 'test', extraInfo: {} }
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 }
    const request = { version: 1, key, task, group: key, sample: 0, split: 'train', policy: 'policy', sampling, limits: {} }
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify(request) })).status).toBeLessThan(300)
  }
  await servers[1]!.die()
  const run = readRun(join(directory, 'recorded', 'rollouts'))
  onTestFinished(() => run.close())
  const isOut = ({ engines }: HealthSample) => engines['policy']!.replicas.some(({ ready }) => !ready)
  const last = await expect
    .poll(() => run.health(0).samples.at(-1)?.running === 1 && isOut(run.health(0).samples.at(-1)!))
    .toBe(true)
    .then(() => run.health(0).samples.at(-1)!)
  expect(last).toMatchObject({
    queued: 1,
    running: 1,
    retries: 0,
    calls: 0,
    channel: null,
    memoryBytes: expect.any(Number),
    engines: {
      policy: {
        ready: true,
        weightVersion: 0,
        replicas: [
          { ready: true, reason: null },
          { ready: false, reason: 'unhealthy' },
        ],
      },
    },
  })
  const watch = new URL(/watch +(\S+)/.exec(text)![1]!)
  const shownRun = createHttpRuns(watch.origin, watch.searchParams.get('token')!).run(watch.hash.slice(2))
  expect(await shownRun.summary()).toMatchObject({ name: 'serve', status: 'running', rollouts: { queued: 1, running: 1 } })
  expect((await shownRun.health(0)).samples.at(-1)).toMatchObject({ running: 1 })
  const blockedUntil = performance.now() + 400
  while (performance.now() < blockedUntil);
  const mostLate = () => Math.max(0, ...run.health(last.at).samples.map(({ eventLoopMs }) => eventLoopMs.most))
  await expect.poll(mostLate).toBeGreaterThan(300)
  stop.abort()
  await ended
  const { events } = await readEvents(join(directory, 'recorded', 'rollouts'))
  expect([events[0]?.event.type, events.at(-1)?.event]).toMatchObject(['run-start', { type: 'run-end', status: 'stopped' }])
})
