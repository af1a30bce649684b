import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentProgram, PolicyGateway, RolloutRequest } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const hourMs = 3_600_000

/** Asks three times, and answers with what it is told last. */
const program: AgentProgram = {
  agents: [{ name: 'agent', trainable: true }],
  async run(_, context) {
    const { baseUrl } = context.policy()
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Atomic number of gold?' }] })
    let answer = ''
    for (let call = 0; call < 3; call++) {
      const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body, signal: context.signal })
      answer = ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
    }
    return { answer, messages: [] }
  },
}

/** A provider that refuses every call for load while `isBusy` says so. */
async function startProvider(isBusy: () => boolean) {
  let calls = 0
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      calls++
      const message = { role: 'assistant', content: '79' }
      const whole = {
        model: 'large',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 9, completion_tokens: 1 },
      }
      response.writeHead(isBusy() ? 429 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(isBusy() ? { error: { message: 'Too many requests.' } } : whole))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls: () => calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Counts the rollouts whose calls wait. */
function countWaits(gateway: PolicyGateway) {
  const waiting = new Set<string>()
  const open: PolicyGateway['open'] = (request) =>
    gateway.open({
      ...request,
      onWait(waits) {
        if (waits) waiting.add(request.rollout)
        else waiting.delete(request.rollout)
        request.onWait?.(waits)
      },
    })
  return { waiting, gateway: { ...gateway, open } }
}

const requests = (count: number): RolloutRequest[] =>
  Array.from({ length: count }, (_, index) => ({
    version: 1,
    key: `eval/${index}`,
    task: { version: 1, id: `gold-${index}`, hash: 'hash', input: 'Atomic number of gold?', data: {}, dataSource: 'test', extraInfo: {} },
    group: 'gold',
    sample: index,
    split: 'test',
    policy: 'solver',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 256, stop: [], seed: 0 },
    limits: { timeoutMs: 60_000 },
  }))

/** A runner of rollouts whose policy is the provider's model, which is evaluated with patience. */
async function openStage(baseUrl: string) {
  const stack = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'evaluated-model-'))
  stack.defer(() => rm(directory, { recursive: true }))
  const solver = {
    kind: 'frozen',
    baseUrl,
    dialect: 'chat-completions',
    model: 'large',
    evaluated: true,
    patienceMs: Number.POSITIVE_INFINITY,
  } as const
  const warnings: string[] = []
  const real = stack.adopt(await createGateway({ models: { solver }, seed: 1, onWarning: ({ code }) => warnings.push(code) }), (each) =>
    each.close(),
  )
  const { gateway, waiting } = countWaits(real)
  const store = stack.adopt(await openRunStore({ path: join(directory, 'run') }), (each) => each.close())
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), (each) => each.close())
  const reward = {
    name: 'exact',
    score: async ({ episode, answer }: { episode: { answer: string | null }; answer: { groundTruth: unknown } }) => ({
      reward: episode.answer === answer.groundTruth ? 1 : 0,
      scores: {},
    }),
    close: async () => {},
  }
  const runner = stack.adopt(
    createRolloutRunner({
      program,
      gateway,
      environment,
      reward,
      store,
      answerKey: (taskId) => ({ version: 1, taskId, groundTruth: '79' }),
      concurrency: 8,
    }),
    (each) => each.close(),
  )
  return { runner, waiting, warnings, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const turnOfLoop = () => new Promise<void>((resolve) => setImmediate(resolve))

test('a model that refuses calls for an hour fails no rollout of one minute', async () => {
  const start = Date.now()
  await using provider = await startProvider(() => Date.now() < start + hourMs)
  await using stage = await openStage(provider.baseUrl)
  const { runner, waiting, warnings } = stage
  let isOver = false
  const episodes = runner.runAll(requests(24), new AbortController().signal).finally(() => {
    isOver = true
  })
  // Time passes in large steps only while every rollout waits: otherwise it would run out while sockets are read.
  while (!isOver) {
    const { running } = runner.counts()
    await vi.advanceTimersByTimeAsync(running > 0 && waiting.size === running ? 500 : 0.01)
    await turnOfLoop()
  }
  expect((await episodes).map(({ stopReason, reward }) => [stopReason, reward])).toEqual(Array(24).fill(['completed', 1]))
  expect(Date.now() - start).toBeGreaterThan(hourMs)
  // One call a minute asks for all of them.
  expect(provider.calls()).toBeLessThan(24 * 3 + 60 + 30)
  expect(warnings).toEqual(['MODEL_BUSY'])
})

test('a run that is stopped while its model refuses calls ends at once', async () => {
  await using provider = await startProvider(() => true)
  await using stage = await openStage(provider.baseUrl)
  const { runner, waiting } = stage
  const stop = new AbortController()
  const episodes = runner.runAll(requests(24), stop.signal)
  const ended = expect(episodes).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  const before = Date.now()
  while (waiting.size < 8) {
    await vi.advanceTimersByTimeAsync(0.01)
    await turnOfLoop()
  }
  stop.abort(new Error('Ctrl-C'))
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(0.01)
    await turnOfLoop()
  }
  await ended
  expect(waiting.size).toBe(0)
  expect(Date.now() - before).toBeLessThan(60_000)
})
