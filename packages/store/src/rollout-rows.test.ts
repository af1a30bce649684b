import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { RolloutQuery } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { storeWorker } from './testing/child-process.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

test('a row is there from the queue to the result', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const request = runRequest('a', { group: 'g', step: 3, kind: 'hard', sample: 2, split: 'test' })
  const place = { key: 'a', group: 'g', taskId: 'task-a', kind: 'hard', split: 'test', sample: 2, step: 3 }
  const unfinished = { finished: null, endedAt: null, reward: null, stopReason: null, error: null, answer: null, toolCalls: 0 }
  await store.queue(request)
  const queued = store.rolloutRow('a')
  expect(queued).toMatchObject({ ...place, ...unfinished, status: 'queued', attempt: 0, startedAt: null, turns: 0, sampledTokens: 0 })
  expect([store.statuses(), store.rolloutRows({ status: 'queued' }).rows.length]).toMatchObject([{ queued: 1, running: 0, done: 0 }, 1])
  expect(queued?.waitMs).toMatchObject({ engine: 0, tools: 0, agent: 0 })
  await store.begin(request)
  const [first, second] = turnChain(0, 2)
  await store.appendTurn('a', 0, 'agent', { ...first!, timing: { startedAt: 1, endedAt: 41 }, cost: 0.5 })
  const running = store.rolloutRow('a')
  expect(running).toMatchObject({ ...place, ...unfinished, status: 'running', turns: 1, sampledTokens: 3, cost: 0.5 })
  expect([store.statuses(), store.rolloutRows({ status: 'running' }).rows.length]).toMatchObject([{ queued: 0, running: 1, done: 0 }, 1])
  expect(running?.startedAt).toBeGreaterThanOrEqual(queued!.queuedAt)
  expect(running?.waitMs).toMatchObject({ queue: running!.startedAt! - queued!.queuedAt, engine: 40 })
  expect(store.turnsOf('a')).toEqual({
    attempt: 0,
    trajectories: new Map([['agent', [{ ...first, timing: { startedAt: 1, endedAt: 41 }, cost: 0.5 }]]]),
  })
  const from = running!.startedAt!
  const turns = [first!, second!].map((turn, index) => ({
    ...turn,
    delivered: 'delivered' as const,
    timing: { startedAt: from + 10 * index, endedAt: from + 10 * index + 5 },
  }))
  const error = { code: 'REWARD_FAILED', boundary: 'reward', retryable: false, message: 'No.' } as const
  const result = { reward: 0.25, stopReason: 'failed', error, answer: 'no', timing: { startedAt: from, endedAt: from + 30 } } as const
  await store.finish(episodeOf(request, 0, turns, result))
  const { queue } = running!.waitMs
  const { timing, ...columns } = result
  const counts = { turns: 2, sampledTokens: 6, toolCalls: 0, cost: 0 }
  expect(store.rolloutRow('a')).toMatchObject({ ...place, ...columns, ...timing, ...counts, status: 'done', finished: 1 })
  expect(store.rolloutRow('a')?.waitMs).toEqual({ queue, engine: 10, tools: 0, agent: expect.closeTo(20, 2) })
  expect(
    store
      .turnsOf('a')
      ?.trajectories.get('agent')
      ?.map(({ delivered }) => delivered),
  ).toEqual(['delivered', 'delivered'])
  expect([store.rolloutRow('b'), store.turnsOf('b')]).toEqual([null, null])
  await store.close()
})

test('what was queued, or ran, when its process died is queued again, and begins its next attempt', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const states = () => store.rolloutRows().rows.map(({ key, status, attempt }) => `${key} ${status} ${attempt}`)
  const requests = ['a', 'b'].map((key) => runRequest(key))
  for (const request of requests) await store.queue(request)
  await store.begin(requests[0]!)
  for (const request of requests) await store.queue(request)
  expect(states()).toEqual(['a queued 0', 'b queued 0'])
  for (const request of requests) await store.begin(request)
  expect(states()).toEqual(['a running 1', 'b running 0'])
  await store.finish(episodeOf(requests[1]!, 0, []))
  await store.queue(requests[1]!)
  expect(states()).toEqual(['a running 1', 'b done 0'])
  expect(store.rollout('a')).toEqual({ request: requests[0], status: 'running', attempt: 1, error: null })
  await store.close()
})

test('what is given up is cancelled, and begins its next attempt', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const requests = ['waits', 'runs', 'again', 'open'].map((key) => runRequest(key))
  const [waits, runs, again] = requests as [(typeof requests)[0], (typeof requests)[0], (typeof requests)[0]]
  for (const request of requests) await store.queue(request)
  for (const request of [runs, again, again]) await store.begin(request)
  for (const turn of turnChain(0, 2)) await store.appendTurn('runs', 0, 'agent', turn)
  await store.cancel('waits', null)
  await store.cancel('runs', 0)
  await store.cancel('again', 0)
  await store.cancel('again', null)
  const states = () => store.rolloutRows().rows.map(({ key, status, attempt }) => `${key} ${status} ${attempt}`)
  expect(states()).toEqual(['waits cancelled 0', 'runs cancelled 0', 'again running 1', 'open queued 0'])
  expect(store.rolloutRow('runs')).toMatchObject({
    turns: 2,
    sampledTokens: 6,
    endedAt: expect.any(Number),
    reward: null,
    stopReason: null,
  })
  expect(store.rolloutRow('waits')).toMatchObject({ turns: 0, startedAt: null, waitMs: { engine: 0, tools: 0, agent: 0 } })
  expect(store.supersededTokens()).toBe(6)
  expect(store.statuses()).toEqual({ queued: 1, running: 1, done: 0, cancelled: 2, interrupted: 0 })
  await store.queue(runs)
  expect([store.rolloutRow('runs')?.status, store.supersededTokens()]).toEqual(['queued', 6])
  await expect(store.finish(episodeOf(runs, 1, []))).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
  expect(await store.begin(runs)).toEqual({ attempt: 1, episode: null })
  expect(await store.begin(waits)).toEqual({ attempt: 0, episode: null })
  expect(store.rolloutRow('runs')).toMatchObject({ status: 'running', endedAt: null })
  await store.finish(episodeOf(runs, 1, []))
  await store.cancel('runs', 1)
  expect(states()[1]).toBe('runs done 1')
  await store.close()
  const reader = readRun(folder.path)
  expect(reader.statuses()).toEqual({ queued: 0, running: 0, done: 1, cancelled: 3, interrupted: 0 })
  reader.close()
})

test('what waited or ran when its process was killed is interrupted, for readers and for the next owner', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await using worker = storeWorker(['stop', path])
  await worker.line((line) => line === 'stopped')
  const reader = readRun(path)
  const keys = (status: RolloutQuery['status']) => reader.rolloutRows({ status }).rows.map((row) => `${row.key} ${row.status}`)
  expect([keys('running'), keys('queued'), keys('interrupted')]).toEqual([['runs running'], ['waits queued'], []])
  worker.process.kill('SIGKILL')
  await worker.exited
  expect([keys('running'), keys('queued'), keys('interrupted')]).toEqual([[], [], ['runs interrupted', 'waits interrupted']])
  expect(reader.statuses()).toEqual({ queued: 0, running: 0, done: 0, cancelled: 0, interrupted: 2 })
  expect(reader.rollout('runs')?.status).toBe('interrupted')
  expect(reader.supersededTokens()).toBe(6)
  const seen = reader.rolloutRow('runs')!
  expect(seen).toMatchObject({ turns: 2, endedAt: 2 })
  expect(reader.rolloutRow('runs')?.waitMs).toEqual(seen.waitMs)
  const store = await openRunStore({ path })
  expect(store.rolloutRows({ status: 'interrupted' }).rows.map(({ key }) => key)).toEqual(['runs', 'waits'])
  expect(keys('interrupted')).toEqual(['runs interrupted', 'waits interrupted'])
  expect(await store.begin(runRequest('runs'))).toEqual({ attempt: 1, episode: null })
  expect(keys('running')).toEqual(['runs running'])
  reader.close()
  await store.close()
})

test('rollouts of steps that are discarded belong to none, but for those that were trained', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  for (const [key, step, split] of [
    ['a', 1, 'train'],
    ['b', 2, 'train'],
    ['c', 2, 'train'],
    ['d', 2, 'test'],
  ] as const) {
    const request = runRequest(key, { step, split })
    await store.begin(request)
    await store.finish(episodeOf(request, 0, []))
  }
  await store.commitStep({ step: 1, weightVersion: 1, rollouts: ['a', 'c'], metrics: {}, checkpoint: null })
  expect(store.timesTakenBack()).toBe(0)
  await store.discardStepsAfter(1)
  expect(store.timesTakenBack()).toBe(1)
  expect(store.rolloutRows().rows.map(({ step }) => step)).toEqual([1, null, 2, 2])
  expect(store.finishedTotals(0).steps.map(({ step, rewards }) => [step, rewards])).toEqual([
    [1, [1]],
    [2, [1]],
  ])
  await store.close()
})

test('rows come by page, filtered, in the order of the queue or of finishing', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const requests = Array.from({ length: 12 }, (_, index) =>
    runRequest(`${index}`, {
      group: `g${index % 3}`,
      step: index < 8 ? 1 : 2,
      split: index % 2 === 0 ? 'train' : 'test',
      kind: index === 5 ? 'odd' : 'even',
    }),
  )
  for (const request of requests) await store.queue(request)
  for (const request of requests.slice(0, 9)) await store.begin(request)
  for (const index of [7, 2, 0, 5]) {
    const stopReason = index === 2 ? 'turn-limit' : 'completed'
    await store.finish(episodeOf(requests[index]!, 0, [], { reward: index === 0 ? null : index / 10, stopReason }))
  }
  const keys = (query?: RolloutQuery) => store.rolloutRows(query).rows.map(({ key }) => Number(key))
  const queries: [RolloutQuery, number[]][] = [
    [{ split: 'test' }, [1, 3, 5, 7, 9, 11]],
    [{ step: 2, split: 'train' }, [8, 10]],
    [{ group: 'g1' }, [1, 4, 7, 10]],
    [{ taskId: 'task-4' }, [4]],
    [{ key: '3', split: 'test' }, [3]],
    [{ kind: 'odd' }, [5]],
    [{ status: 'queued' }, [9, 10, 11]],
    [{ status: 'running', group: undefined }, [1, 3, 4, 6, 8]],
    [{ stopReason: 'turn-limit' }, [2]],
    [{ minReward: 0.2, maxReward: 0.5 }, [2, 5]],
    [{ finishedAfter: 0 }, [7, 2, 0, 5]],
    [{ finishedAfter: 2, split: 'train' }, [0]],
    [{ split: 'nothing' }, []],
  ]
  for (const [query, expected] of queries) expect(keys(query)).toEqual(expected)
  for (const query of [{}, { finishedAfter: 0 }, { split: 'train' }]) {
    const paged: number[] = []
    for (let after: string | null | undefined; after !== null; ) {
      const { rows, next }: ReturnType<typeof store.rolloutRows> = store.rolloutRows({ ...query, limit: 2, after })
      paged.push(...rows.map(({ key }) => Number(key)))
      after = next
    }
    expect(paged).toEqual(keys(query))
  }
  const episodes = (filter: RolloutQuery) => Array.from(store.episodes(filter), ({ rollout }) => Number(rollout))
  expect([episodes({}), episodes({ split: 'test', minReward: 0.6 }), episodes({ key: '4' })]).toEqual([[0, 2, 5, 7], [7], []])
  expect(store.splits()).toEqual({ test: 2, train: 2 })
  expect(store.stopReasons()).toEqual({ completed: 3, 'turn-limit': 1 })
  await store.close()
})

test('a process that reads everything while another writes misses nothing, and leaves no log behind', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path, batchMs: 0 })
  await using follower = storeWorker(['follow', path])
  await follower.line((line) => line === 'open')
  const finished: string[] = []
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    for (let index = lane; index < 400; index += 8) {
      const request = runRequest(`${index}`, { step: index % 5 })
      await store.queue(request)
      await store.begin(request)
      const turns = turnChain(0, 1 + (index % 3), index)
      for (const turn of turns) await store.appendTurn(request.key, 0, 'agent', turn)
      await store.finish(episodeOf(request, 0, turns))
      finished.push(`finished ${finished.length + 1} ${index} ${turns.length}`)
    }
  })
  await Promise.all(lanes)
  await store.setState('ended', true)
  expect(await follower.exited).toMatchObject({ code: 0, stderr: '' })
  const lines = follower.lines.filter((line) => line.startsWith('finished'))
  expect(lines).toEqual(finished)
  expect(follower.lines.some((line) => line.startsWith('running'))).toBe(true)
  await store.close()
  expect((await readdir(path)).filter((name) => name.startsWith('run.db'))).toEqual(['run.db'])
})

test('a run without rollouts has no rows', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  await (await openRunStore({ path })).close()
  const run = readRun(path)
  expect(run.rolloutRows()).toEqual({ rows: [], next: null })
  expect([run.samples({ step: 1 }), run.steps(), run.splits()]).toEqual([[], [], {}])
  expect(run.finishedTotals(0)).toEqual({ last: 0, sums: [], steps: [], evaluated: [], errors: [], incomplete: [], repeated: [] })
  run.close()
})

test('every attempt of a rollout is there: which worker ran it, what it recorded, and why another followed', async () => {
  await using folder = await temporaryFolder()
  const request = runRequest('a')
  const error = { code: 'WORKER_LOST', boundary: 'agent', retryable: true, message: 'Gone.' } as const
  const first = await openRunStore({ path: folder.path })
  expect(first.attempts('a')).toEqual([])
  await first.queue(request)
  expect(first.attempts('a')).toEqual([])
  await first.begin(request)
  const [turn, next] = turnChain(0, 2)
  await first.appendTurn('a', 0, 'agent', turn!)
  expect(first.attempts('a')).toMatchObject([{ attempt: 0, worker: null, endedAt: null, error: null, turns: 1, sampledTokens: 3 }])
  const endedAt = first.attempts('a')[0]!.startedAt + 5
  await first.begin(request, { worker: { name: 'w', agent: 'agent-1' }, endedAt, error })
  const lost = { attempt: 0, worker: 'w', agent: 'agent-1', endedAt, error, turns: 1, sampledTokens: 3 }
  expect(first.attempts('a')).toMatchObject([lost, { attempt: 1, worker: null, endedAt: null, turns: 0 }])
  await first.close()
  const store = await openRunStore({ path: folder.path })
  await store.begin(request)
  const turns = [turn!, next!].map((each) => ({ ...each, attempt: 2, delivered: 'delivered' as const }))
  await store.finish(episodeOf(request, 2, turns), { name: 'other', agent: 'agent-2' })
  const cancelled = { attempt: 1, worker: null, agent: null, error: null, endedAt: expect.any(Number), turns: 0 }
  const last = { attempt: 2, worker: 'other', agent: 'agent-2', endedAt: expect.any(Number), error: null, turns: 2, sampledTokens: 6 }
  const all = [lost, cancelled, last]
  expect(store.attempts('a')).toMatchObject(all)
  await store.close()
  const reader = readRun(folder.path)
  expect(reader.attempts('a')).toMatchObject(all)
  reader.close()
})
