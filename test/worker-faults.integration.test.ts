import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { RolloutRequest } from '@aworld-train/core'
import {
  createRolloutRunner,
  createRolloutServer,
  createRolloutService,
  createWorkerPool,
  type InProcessRolloutRunner,
} from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { expect, test } from 'vitest'
import { startChatGateway } from '../packages/gateway/src/testing/start-chat-gateway.ts'
import { memoryEnvironment } from '../packages/rollout/src/testing/memory-environment.ts'
import { exactReward } from '../packages/rollout/src/testing/rollout-fixtures.ts'
import { startFaultyProxy } from './support/faulty-proxy.ts'

const entry = fileURLToPath(new URL('./fault-worker.ts', import.meta.url))
const limits = { beatMs: 100, deadMs: 2_000, graceMs: 2_000, stopMs: 500 }

/** A coordinator with its gateway, its store on disk and its port, and no agent of its own. */
async function startCoordinator(stack: AsyncDisposableStack) {
  const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'worker-faults-')), (each) => rm(each, { recursive: true }))
  const store = stack.adopt(await openRunStore({ path: join(directory, 'run') }), (each) => each.close())
  const { gateway } = stack.use(await startChatGateway(() => 'ja'))
  const opened = Promise.withResolvers<InProcessRolloutRunner>()
  const pool = stack.adopt(createWorkerPool({ agent: { hash: 'agent-1', parts: {} }, limits }), (each) => each.close())
  const service = stack.adopt(
    createRolloutService({
      store,
      openRunner(onEvent) {
        const runner = createRolloutRunner({
          program: { agents: [{ name: 'agent', trainable: true }], run: () => Promise.reject(new Error('Agents run at workers.')) },
          ...{ gateway, store, environment: memoryEnvironment(), workers: pool, reward: exactReward(), onEvent },
          answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'ja' }),
        })
        opened.resolve(runner)
        return runner
      },
    }),
    (each) => each.close(),
  )
  const server = stack.adopt(await createRolloutServer({ service, workers: { pool, token: 'secret' } }), (each) => each.close())
  const runner = await opened.promise
  return { gateway, store, service, runner, url: server.url, status: (name: string) => statusOf(runner, name) }
}

const statusOf = ({ workers }: InProcessRolloutRunner, name: string) => workers.rows().find((row) => row.name === name)?.status

/** Starts a worker in a process of its own, which ends with this one; resolves when it is connected. */
async function startWorker(stack: AsyncDisposableStack, url: string, name: string): Promise<ChildProcess> {
  const worker = spawn(process.execPath, [entry, url, name], { stdio: ['pipe', 'pipe', 'inherit'] })
  worker.stdin.on('error', () => {})
  stack.defer(() => void worker.kill('SIGKILL'))
  await once(worker.stdout, 'data')
  worker.stdout.resume()
  return worker
}

function request(key: string, waitMs: number): RolloutRequest {
  return {
    ...{ version: 1, key, group: key, sample: 0, split: 'train', policy: 'policy', limits: {} },
    task: { version: 1, id: key, hash: key, input: `Frage ${key}`, data: { waitMs }, dataSource: 'test', extraInfo: {} },
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 16, stop: [], seed: 0 },
  }
}

test('five workers that are killed and five that stand still lose no rollout: each has one result, with the turns of one attempt', async () => {
  await using stack = new AsyncDisposableStack()
  const { runner, service, store, url, status } = await startCoordinator(stack)
  const names = ['a', 'b', 'c']
  const workers = await Promise.all(names.map((name) => startWorker(stack, url, name)))
  const keys = Array.from({ length: 40 }, (_, index) => `r${index}`)
  const states = Promise.all(
    keys.map(async (key) => {
      await service.accept(request(key, 150))
      return await service.wait(key)
    }),
  )
  for (let fault = 0; fault < 10; fault++) {
    const index = fault % 3
    const name = names[index]!
    const worker = workers[index]!
    // The first kill is to cost attempts, however late they begin.
    if (fault === 0) await expect.poll(() => runner.workers.rows().find((row) => row.name === name)?.assignments).not.toEqual([])
    if (fault % 2 === 0) {
      worker.kill('SIGKILL')
      await once(worker, 'exit')
      workers[index] = await startWorker(stack, url, name)
    } else {
      worker.kill('SIGSTOP')
      await expect.poll(() => status(name)).toBe('lost')
      worker.kill('SIGCONT')
      await expect.poll(() => status(name)).toBe('connected')
    }
  }
  const episodes = (await states).map(({ episode }) => episode!)
  for (const { stopReason, reward, trajectories } of episodes)
    expect([stopReason, reward, trajectories.map(({ turns }) => turns.length)]).toEqual(['completed', 1, [2]])
  expect(Math.max(...episodes.map(({ attempt }) => attempt))).toBeGreaterThan(0)
  expect(store.counts()).toMatchObject({ rollouts: 40, finished: 40 })
  expect(runner.workers.rows().flatMap(({ assignments }) => assignments)).toEqual([])
  for (const worker of workers) worker.kill('SIGTERM')
  expect(await Promise.all(workers.map(async (worker) => worker.exitCode ?? (await once(worker, 'exit'))[0]))).toEqual([0, 0, 0])
})

test('thirty deaths of all workers lose no rollout', async () => {
  await using stack = new AsyncDisposableStack()
  const { runner, service, store, url } = await startCoordinator(stack)
  const start = () => Promise.all(['a', 'b'].map((name) => startWorker(stack, url, name)))
  const keys = Array.from({ length: 80 }, (_, index) => `r${index}`)
  const states = Promise.all(
    keys.map(async (key, index) => {
      await service.accept(request(key, index % 8 === 0 ? 600 : 200))
      return await service.wait(key)
    }),
  )
  for (let outage = 0; outage < 30; outage++) {
    const workers = await start()
    await sleep(400)
    for (const worker of workers) worker.kill('SIGKILL')
    await Promise.all(workers.map((worker) => once(worker, 'exit')))
  }
  await start()
  for (const { episode } of await states)
    expect([episode!.rollout, episode!.error, episode!.reward, episode!.trajectories[0]!.turns.length]).toEqual([
      episode!.rollout,
      undefined,
      1,
      2,
    ])
  expect(runner.counts().lostAttempts).toBeGreaterThan(30)
  expect(store.counts()).toMatchObject({ rollouts: 80, finished: 80 })
})

test('a connection that is reset, half closed or a black hole costs a rollout at most an attempt', async () => {
  await using stack = new AsyncDisposableStack()
  const { service, url } = await startCoordinator(stack)
  const proxy = stack.use(await startFaultyProxy(url))
  await startWorker(stack, proxy.url, 'far')
  for (const fault of ['reset', 'halfClose', 'blackHole'] as const) {
    const connections = proxy.connections()
    await service.accept(request(fault, 1_600))
    await expect.poll(() => service.get(fault).status).toBe('running')
    await sleep(50)
    proxy[fault]()
    expect((await service.wait(fault)).episode).toMatchObject({ reward: 1, attempt: fault === 'blackHole' ? 1 : 0 })
    expect([fault, proxy.connections()]).toEqual([fault, connections + 1])
  }
})
