import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain, turnOf } from './testing/run-fixtures.ts'

const step = (number: number, rollouts: readonly string[]) => ({
  step: number,
  weightVersion: number + 1,
  rollouts,
  metrics: { loss: 0.5 },
  checkpoint: `checkpoints/${number}`,
})
const refused = { code: 'STORE_CONFLICT' }

test('gives back what was finished, tokens and all, after it was closed and opened', async () => {
  await using folder = await temporaryFolder()
  const request = runRequest('a')
  const turns = [...turnChain(0, 4, 5, 'planner'), ...turnChain(0, 2, 6, 'worker')]
  const episode = episodeOf(request, 0, turns, { agentRewards: { agent: 0.5 } })
  const store = await openRunStore({ path: folder.path })
  await store.begin(request)
  for (const turn of turns) await store.appendTurn('a', 0, turn.agent, turn)
  await store.finish(episode)
  expect(store.episode('a')).toEqual(episode)
  await store.close()
  const again = await openRunStore({ path: folder.path })
  expect(again.episode('a')).toEqual(episode)
  expect(again.episode('b')).toBeNull()
  expect(await again.begin(request)).toEqual({ attempt: 0, episode })
  await again.close()
})

test('adds the scores of a group to results, all or none, and readers that added up can tell', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path, thread: true })
  const requests = ['a', 'b'].map((key) => runRequest(key))
  const episodes = requests.map((request) => episodeOf(request, 0, turnChain(0, 1), { reward: null }))
  for (const [index, episode] of episodes.entries()) {
    await store.begin(requests[index]!)
    await store.finish(episode)
  }
  const [judged] = episodes[0]!.trajectories
  const error = { code: 'JUDGE_INVALID', boundary: 'reward' as const, retryable: false, message: 'no' }
  const first = { rollout: 'a', reward: 0.5, stopReason: 'completed' as const, rewardTrajectories: [{ ...judged!, turns: [] }] }
  await expect(store.keepScores([first, { ...first, rollout: 'c' }])).rejects.toMatchObject(refused)
  expect(store.episode('a')).toEqual(episodes[0])
  const reader = readRun(folder.path)
  const before = reader.timesTakenBack()
  await store.keepScores([first, { rollout: 'b', reward: null, stopReason: 'failed', error }])
  expect(store.episode('a')).toEqual({ ...episodes[0], ...first, groupScored: true })
  expect(store.episode('b')).toEqual({ ...episodes[1], stopReason: 'failed', error, groupScored: true })
  expect(reader.rolloutRows({}).rows.map(({ reward, stopReason, error: why }) => [reward, stopReason, why?.code])).toEqual([
    [0.5, 'completed', undefined],
    [null, 'failed', 'JUDGE_INVALID'],
  ])
  expect(reader.timesTakenBack()).toBeGreaterThan(before)
  reader.close()
  await store.close()
})

test('stores the suffix only of a prompt that extends its parent, and the whole of one that does not', async () => {
  await using folder = await temporaryFolder()
  const root = turnOf({ index: 0, parent: null, prompt: [1, 2, 3, 4], completion: [5] })
  const child = turnOf({ index: 1, parent: 0, prompt: [1, 2, 3, 4, 5, 6], completion: [7] })
  const edited = turnOf({ index: 2, parent: 1, prompt: [1, 2, 9], completion: [8] })
  const store = await openRunStore({ path: folder.path })
  await store.begin(runRequest('a'))
  await Promise.all([root, child, edited].map((turn) => store.appendTurn('a', 0, 'agent', turn)))
  await store.finish(episodeOf(runRequest('a'), 0, [root, child, edited]))
  expect(store.episode('a')?.trajectories[0]?.turns).toEqual([root, child, edited])
  await store.close()
  const wordsOf = { root: 4 + 2, child: 1 + 2, edited: 3 + 2 }
  expect((await stat(join(folder.path, 'segments', '000001.bin'))).size).toBe(4 * (wordsOf.root + wordsOf.child + wordsOf.edited))
})

test('keeps turns that come only with the result, and the delivery of those that came before', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const turns = turnChain(0, 3)
  await store.begin(runRequest('a'))
  await store.appendTurn('a', 0, 'agent', turns[0]!)
  const delivered = turns.map((turn, index) => ({ ...turn, delivered: index === 2 ? ('abandoned' as const) : ('delivered' as const) }))
  const episode = episodeOf(runRequest('a'), 0, delivered)
  await store.finish(episode)
  expect(store.episode('a')).toEqual(episode)
  await store.close()
})

test('a new attempt shuts out the old one', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const request = runRequest('a')
  expect(await store.begin(request)).toEqual({ attempt: 0, episode: null })
  const [first, second] = turnChain(0, 2)
  await store.appendTurn('a', 0, 'agent', first!)
  expect(await store.begin(request)).toEqual({ attempt: 1, episode: null })
  await expect(store.appendTurn('a', 0, 'agent', second!)).rejects.toMatchObject(refused)
  await expect(store.finish(episodeOf(request, 0, [first!]))).rejects.toMatchObject(refused)
  const turns = turnChain(1, 1)
  await store.appendTurn('a', 1, 'agent', turns[0]!)
  await store.finish(episodeOf(request, 1, turns))
  expect(store.episode('a')?.attempt).toBe(1)
  expect(store.counts()).toEqual({ rollouts: 1, finished: 1, trained: 0, turns: 2, sampledTurns: 2, sampledTokens: 6 })
  expect([store.supersededTokens(), store.statuses()]).toMatchObject([3, { done: 1 }])
  expect([...store.calls()]).toEqual([0, 1].map((attempt) => ({ key: 'a', attempt, tokens: 3 })))
  await store.close()
})

test('a second result, a write after it, and a write of what was never begun are refused', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const request = runRequest('a')
  const [turn] = turnChain(0, 1)
  await expect(store.appendTurn('a', 0, 'agent', turn!)).rejects.toMatchObject(refused)
  await store.begin(request)
  const results = await Promise.allSettled([
    store.finish(episodeOf(request, 0, [turn!])),
    store.finish(episodeOf(request, 0, [], { reward: 0 })),
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  await expect(store.appendTurn('a', 0, 'agent', turn!)).rejects.toMatchObject(refused)
  expect([...store.episodes()].map(({ reward }) => reward)).toEqual([1])
  await expect(store.begin(runRequest('a', { task: runRequest('b').task }))).rejects.toMatchObject(refused)
  await store.close()
})

test('a failure of the infrastructure is no result: the rollout is begun again, in a new attempt that may be finished', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const request = runRequest('a')
  await store.begin(request)
  const error = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'It died.' } as const
  await store.finish(episodeOf(request, 0, [], { reward: null, stopReason: 'failed', error }))
  expect(store.finishedTotals(0).errors).toMatchObject([{ code: 'TOOL_SERVER_DIED', count: 1 }])
  expect(await store.begin(request)).toEqual({ attempt: 1, episode: null })
  expect([store.episode('a'), store.statuses(), store.timesTakenBack()]).toMatchObject([null, { running: 1 }, 1])
  expect(store.attempts('a')).toMatchObject([
    { attempt: 0, error },
    { attempt: 1, error: null },
  ])
  await store.finish(episodeOf(request, 1, turnChain(1, 1)))
  expect(store.episode('a')).toMatchObject({ attempt: 1, reward: 1 })
  expect(store.finishedTotals(0).errors).toEqual([])
  const broken = runRequest('b')
  await store.begin(broken)
  const own = { ...error, code: 'AGENT_FAILED', boundary: 'agent', retryable: false } as const
  await store.finish(episodeOf(broken, 0, [], { reward: null, stopReason: 'failed', error: own }))
  expect(await store.begin(broken)).toMatchObject({ attempt: 0, episode: { error: own } })
  await store.close()
})

test('the same turn again is no harm; another in its place, or one without its parent, is refused', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  await store.begin(runRequest('a'))
  const [root, child] = turnChain(0, 2)
  await store.appendTurn('a', 0, 'agent', root!)
  await store.appendTurn('a', 0, 'agent', root!)
  await expect(store.appendTurn('a', 0, 'agent', turnChain(0, 1, 9)[0]!)).rejects.toMatchObject(refused)
  await store.appendTurn('a', 0, 'agent', child!)
  expect(store.counts().turns).toBe(2)
  await store.close()
})

test('a rollout is trained at most once, a step committed whole or not at all', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  for (const key of ['a', 'b', 'c']) {
    const { attempt } = await store.begin(runRequest(key))
    await store.finish(episodeOf(runRequest(key), attempt, []))
  }
  await store.begin(runRequest('running'))
  await store.commitStep(step(0, ['b', 'a']))
  await store.commitStep(step(0, ['b', 'a']))
  const refusals = [step(1, ['c', 'a']), step(1, ['c', 'running']), step(1, ['c', 'unknown']), step(1, ['c', 'c']), step(0, ['c'])]
  for (const record of refusals) await expect(store.commitStep(record)).rejects.toMatchObject(refused)
  expect(store.steps()).toEqual([step(0, ['b', 'a'])])
  await store.commitStep(step(1, ['c']))
  await store.close()
  const again = await openRunStore({ path: folder.path })
  expect(again.steps()).toEqual([step(0, ['b', 'a']), step(1, ['c'])])
  expect(again.counts().trained).toBe(3)
  await again.close()
})

test('state is kept, and episodes come in the order they were begun, by split', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  expect(store.getState('cursor')).toBeUndefined()
  await store.setState('cursor', { epoch: 1, order: [3, 1] })
  await store.setState('cursor', { epoch: 2, order: [] })
  expect(store.getState('cursor')).toEqual({ epoch: 2, order: [] })
  const requests = ['c', 'a', 'b'].map((key) => runRequest(key, { split: key === 'a' ? 'test' : 'train' }))
  for (const request of requests) await store.begin(request)
  for (const request of requests.toReversed()) await store.finish(episodeOf(request, 0, []))
  const keys = (split?: string) => Array.from(store.episodes({ split }), ({ rollout }) => rollout)
  expect([keys(), keys('train'), keys('test'), keys('other')]).toEqual([['c', 'a', 'b'], ['c', 'b'], ['a'], []])
  await store.close()
})

test('a reader sees a live run and a finished one, and writes nothing', async () => {
  await using folder = await temporaryFolder()
  const path = join(folder.path, 'run')
  const store = await openRunStore({ path, manifest: { name: 'elements', configurationHash: 'abc' } })
  const reader = readRun(path)
  await store.begin(runRequest('a'))
  const turns = turnChain(0, 2)
  await store.finish(episodeOf(runRequest('a'), 0, turns))
  expect(reader.episode('a')?.trajectories[0]?.turns).toEqual(turns)
  expect(reader.manifest).toMatchObject({ name: 'elements', configurationHash: 'abc', status: 'running' })
  reader.close()
  await store.complete()
  await store.close()
  const later = readRun(path)
  expect(later.manifest.status).toBe('finished')
  expect([...later.episodes()]).toHaveLength(1)
  later.close()
})

test('events are lines of JSON', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  store.appendEvent({ type: 'rollout-start', at: 1, rollout: 'a', attempt: 0, split: 'train' })
  store.appendEvent({ type: 'step-start', at: 2, step: 0, steps: 3 })
  await store.close()
  const lines = (await readFile(join(folder.path, 'events.jsonl'), 'utf8')).trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line).type)).toEqual(['rollout-start', 'step-start'])
})

test('writes after closing are refused, those before are done', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  const begun = store.begin(runRequest('a'))
  await store.close()
  expect(await begun).toEqual({ attempt: 0, episode: null })
  await expect(store.setState('a', 1)).rejects.toThrow('closed')
  await store.close()
})

test('says what was asked for under a key, also after it was opened again', async () => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path })
  expect(store.rollout?.('a')).toBeNull()
  await store.begin(runRequest('a'))
  await store.begin(runRequest('b'))
  await store.finish(episodeOf(runRequest('b'), 0, []))
  expect(store.rollout?.('a')).toEqual({ request: runRequest('a'), status: 'running', attempt: 0, error: null })
  await store.close()
  const again = await openRunStore({ path: folder.path })
  expect(again.rollout?.('b')).toEqual({ request: runRequest('b'), status: 'done', attempt: 0, error: null })
  await again.begin(runRequest('a'))
  expect(again.rollout?.('a')?.attempt).toBe(1)
  await again.close()
})

test.each([false, true])('submissions outlive their process until they have a result or are released (in a thread: %s)', async (thread) => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path, thread })
  const requests = ['runs', 'done', 'waits', 'released'].map((key) => runRequest(key))
  await Promise.all(requests.map((request) => store.keepSubmission(request)))
  await store.queue(runRequest('of-a-trainer'))
  const queuedAt = store.rolloutRow('waits')!.queuedAt
  await store.queue(runRequest('waits'))
  expect(store.rolloutRow('waits')!.queuedAt).toBe(queuedAt)
  for (const key of ['runs', 'done']) await store.begin(runRequest(key))
  await store.finish(episodeOf(runRequest('done'), 0, []))
  await store.keepSubmission(runRequest('done'))
  const error = { code: 'ROLLOUT_CANCELLED', boundary: 'trainer', retryable: true, message: 'Given up.' } as const
  await store.releaseSubmission('released', error)
  for (const key of ['waits', 'done', 'released']) expect(store.rollout(key)?.error).toEqual(key === 'released' ? error : null)
  await store.close()

  const again = await openRunStore({ path: folder.path, thread })
  expect(again.submissions()).toEqual([requests[0], requests[2]])
  expect(again.rollout('released')?.error).toEqual(error)
  await again.begin(runRequest('released'))
  expect(again.rollout('released')).toMatchObject({ status: 'running', error: null })
  await again.close()
})
