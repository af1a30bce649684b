import { setImmediate } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import { openRunStore } from '../open-run-store.ts'
import { readRun } from '../run-reader.ts'
import { episodeOf, runRequest, turnChain } from './run-fixtures.ts'

/**
 * A process that owns a run. `hold PATH` opens and waits; `stop PATH` does so with one rollout that runs and one that waits. `read PATH` only reads it and says `episodes N`; `watch PATH` keeps it open, and reports it once more when SIGTERM stops it. `follow PATH` says
 * `finished N KEY TURNS` of each rollout as it ends, reading all else of the run meanwhile, until it sees the state `ended`. `work PATH ROLLOUTS` runs rollouts of three turns, written in a thread where
 * `threaded` follows, and, every four results, trains them in a step; it says each acknowledged write on a line: `turn KEY ATTEMPT INDEX`,
 * `result KEY ATTEMPT`, `step N KEY…`, and at the end `end`. An error of the catalogue is said as `error CODE MESSAGE`.
 */
const [mode, path, count, threaded] = process.argv.slice(2) as [string, string, string | undefined, string | undefined]

try {
  if (mode === 'read') read()
  else if (mode === 'watch') watch()
  else if (mode === 'follow') await follow()
  else await holdRun()
} catch (error) {
  if (!(error instanceof TrainError)) throw error
  console.log(`error ${error.code} ${error.message}`)
  process.exitCode = 3
}

function read(): void {
  const run = readRun(path)
  console.log(`episodes ${[...run.episodes()].length}`)
  run.close()
}

function watch(): void {
  const run = readRun(path)
  const say = () => console.log(`episodes ${[...run.episodes()].length}`)
  say()
  const open = setInterval(() => {}, 1000)
  process.once('SIGTERM', () => {
    say()
    run.close()
    clearInterval(open)
  })
}

async function follow(): Promise<void> {
  const run = readRun(path)
  console.log('open')
  for (let ended = false, finishedAfter = 0; !ended; await setImmediate()) {
    ended = run.getState('ended') !== undefined
    for (const { key, status } of run.rolloutRows({ limit: 100_000 }).rows) {
      const turns = run.turnsOf(key)?.trajectories.get('agent') ?? []
      if (status === 'running' && turns.length > 0) console.log(`running ${key}`)
    }
    run.counts()
    run.finishedTotals(0)
    for (const { finished, key, turns } of run.rolloutRows({ finishedAfter }).rows) {
      finishedAfter = finished ?? 0
      console.log(`finished ${finished} ${key} ${turns}`)
    }
  }
  run.close()
}

async function holdRun(): Promise<void> {
  const store = await openRunStore({ path, manifest: { name: 'worker', configurationHash: 'hash' }, thread: threaded !== undefined })
  console.log('open')
  if (mode === 'stop') {
    await store.begin(runRequest('runs'))
    for (const turn of turnChain(0, 2)) await store.appendTurn('runs', 0, 'agent', turn)
    await store.queue(runRequest('waits'))
    console.log('stopped')
  }
  if (mode === 'hold' || mode === 'stop') setInterval(() => {}, 1000)
  else {
    await work(store, Number(count))
    await store.close()
    console.log('end')
  }
}

async function work(store: Awaited<ReturnType<typeof openRunStore>>, rollouts: number): Promise<void> {
  for (let first = 0; first < rollouts; first += 4) {
    const keys = Array.from({ length: Math.min(4, rollouts - first) }, (_, index) => `rollout-${first + index}`)
    await Promise.all(keys.map((key) => runRollout(store, key)))
    const step = first / 4
    await store.commitStep({ step, weightVersion: step, rollouts: keys, metrics: {}, checkpoint: null })
    console.log(`step ${step} ${keys.join(' ')}`)
  }
}

async function runRollout(store: Awaited<ReturnType<typeof openRunStore>>, key: string): Promise<void> {
  const request = runRequest(key)
  const { attempt, episode } = await store.begin(request)
  if (episode) return
  const turns = turnChain(attempt, 3, Number(key.split('-')[1]))
  for (const turn of turns) {
    await store.appendTurn(key, attempt, 'agent', turn)
    console.log(`turn ${key} ${attempt} ${turn.index}`)
  }
  await store.finish(episodeOf(request, attempt, turns))
  console.log(`result ${key} ${attempt}`)
}
