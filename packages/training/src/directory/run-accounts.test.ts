import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Episode, tokenReport } from '@aworld-train/core'
import { type OwnedRunStore, openRunStore } from '@aworld-train/store'
import { expect, it, onTestFinished } from 'vitest'
import { episodeOf, runRequest, turnChain } from '../../../store/src/testing/run-fixtures.ts'
import { type CallCounters, openRunAccounts } from './run-accounts.ts'

/** The counts of one process: calls, of which some called tools of a server. */
function counted(calls: number, toolCalls: number, servers: number | null): CallCounters {
  const gateway = {
    calls,
    failures: 1,
    continuations: 0,
    branches: {},
    tolerated: { arguments: calls },
    ignored: { [`of ${calls}`]: 1 },
    inFlight: 0,
  }
  const runner = {
    queued: 0,
    running: 0,
    finished: 0,
    episodesByStopReason: {},
    toolErrors: 0,
    retries: 0,
    lostAttempts: 0,
    supersededTokens: 0,
  }
  return {
    gateway: { counts: () => gateway },
    environment: {
      counts: async () => ({ toolCalls, toolErrors: 0, serverToolCalls: servers, serversStarted: 1, serversLost: 0 }),
    },
    runner: { counts: () => ({ ...runner, toolCalls: toolCalls + 2, askedToolCalls: toolCalls, functionCalls: 2 }) },
    engineCalls: () => calls - 1,
  }
}

async function openRun() {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-accounts-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const open = () => openRunStore({ path: join(folder, 'run') })
  return {
    /** Runs a process of the run. One that does not finish is stopped before it has a report. */
    async process(
      counters: CallCounters,
      end: 'finish' | 'close',
      work: (results: OwnedRunStore, store: OwnedRunStore) => Promise<unknown> = async () => {},
    ) {
      await using store = await open().then((each) => ({ ...each, [Symbol.asyncDispose]: () => each.close() }))
      const accounts = openRunAccounts(store)
      accounts.attach(counters)
      await work(accounts.counted(store), store)
      return end === 'finish' ? await accounts.finish() : void (await accounts.close())
    },
  }
}

it('adds up what each process counted', async () => {
  const run = await openRun()
  await run.process(counted(10, 4, 4), 'finish')
  const summary = await run.process(counted(20, 6, 6), 'finish')
  expect(summary?.calls).toEqual({
    modelCalls: { agent: 0, gateway: 30, engine: 28 },
    toolCalls: { asked: 10, agent: 14, environment: 10, functions: 4, servers: 10 },
  })
  expect(summary?.tokenReport).toMatchObject({ failed: 2, tolerated: { arguments: 30 }, ignored: { 'of 10': 1, 'of 20': 1 } })
})

it('does not know what servers counted where a process could not ask them', async () => {
  const run = await openRun()
  await run.process(counted(10, 4, 4), 'close')
  const summary = await run.process(counted(20, 6, 6), 'finish')
  expect(summary?.calls.toolCalls).toEqual({ asked: 10, agent: 14, environment: 10, functions: 4, servers: null })
})

it('knows that no server was called', async () => {
  const run = await openRun()
  await run.process(counted(10, 0, null), 'close')
  expect((await run.process(counted(20, 6, 6), 'finish'))?.calls.toolCalls.servers).toBe(6)
})

it('reports the calls in the episodes of every process', async () => {
  const run = await openRun()
  const play = async (results: OwnedRunStore, key: string, turns: number) => {
    const request = runRequest(key)
    const { attempt } = await results.begin(request)
    for (const turn of turnChain(attempt, turns)) await results.appendTurn(key, attempt, turn.agent, turn)
    await results.finish(episodeOf(request, attempt, turnChain(attempt, turns)))
  }
  await run.process(counted(3, 0, 0), 'close', async (results) => await play(results, 'train/1/0/0', 3))
  let episodes: Episode[] = []
  const summary = await run.process(counted(2, 0, 0), 'finish', async (results, store) => {
    await store.begin(runRequest('train/2/0/0'))
    await play(results, 'train/2/0/0', 2)
    episodes = [...store.episodes()]
  })
  expect(summary?.tokenReport).toMatchObject({ turns: 5, continuations: 3, roots: 2 })
  expect(summary?.repeatedAttempts).toBe(1)
  const { turns, continuations, roots, branches, repeated } = tokenReport(episodes.flatMap(({ trajectories }) => trajectories))
  expect(summary?.tokenReport).toMatchObject({ turns, continuations, roots, branches, repeated })
})
