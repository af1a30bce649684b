// Runs a load with the rollout runner, the gateway and a run store, in this process or on workers. Prints one JSON line.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RolloutRequest } from '@aworld-train/core'
import { ExecutorSettings, openAgentSide, openExecutor } from '@aworld-train/training'
import { launcherEngines, loadAgent, workerEntry } from 'aworld-train'
import { processTree } from '../gateway/process-tree.ts'
import { type LoadOptions, makeLoad, toRequest } from './load.ts'
import { type Measured, measure } from './measure.ts'
import { openParts } from './open-parts.ts'

export interface RunLoadOptions {
  readonly upstreamPort: number
  readonly load: LoadOptions
  /** Rollouts at once. */
  readonly slots: number
  /** Processes that run the agents; 0 for this process. */
  readonly workers: number
  /** Further settings of what starts them, such as its engine. */
  readonly executor: object
  /** Where packages of the engine are found; by default here. */
  readonly directory?: string
  /** When one of them is killed, in seconds from the first start of a rollout; `null` for never. */
  readonly killAfterSeconds: number | null
}

export interface RunLoadResult extends Measured {
  /** Seconds from the first step towards an executor to the end of a first short rollout. */
  readonly startSeconds: number
  readonly turns: number
  /** Rollouts that did not end as planned. */
  readonly failed: number
  /** Rollouts that began anew because their worker was killed. */
  readonly lost: readonly string[]
}

const {
  upstreamPort,
  load,
  slots,
  workers,
  killAfterSeconds,
  executor: settings,
  directory,
} = JSON.parse(process.argv[2] ?? '{}') as RunLoadOptions
const here = fileURLToPath(new URL('.', import.meta.url))
await using stack = new AsyncDisposableStack()
const parts = await openParts(stack, upstreamPort, slots)
const startedAt = performance.now()
const agent = await loadAgent('./agent.ts#agent', here)
const executor =
  workers === 0
    ? null
    : await openExecutor(stack, {
        settings: ExecutorSettings.parse({ ...settings, workerNum: workers, slots: slots / workers }),
        agent,
        engines: launcherEngines,
        directory: directory ?? here,
        entry: workerEntry,
        onWarning: ({ message }) => process.stderr.write(`${message}\n`),
      })
const runner = openAgentSide(stack, {
  program: agent.program,
  ...parts,
  reward: null,
  answers: null,
  concurrency: slots,
  limits: { timeoutMs: 600_000 },
  onEvent: (event) => parts.store.appendEvent(event),
  ...(executor && { workers: executor }),
})

const { signal } = new AbortController()
await runner.run(toRequest('first', '0'), signal)
const startSeconds = (performance.now() - startedAt) / 1000
// Every slot once, so that all workers are there and code is compiled; processes take some seconds to come.
const warmUp = workers === 0 ? '500:500 500' : '4000:500 4000'
await runner.runAll(
  Array.from({ length: slots }, (_, index) => toRequest(`warm-up-${index}`, warmUp)),
  signal,
)
const requests = makeLoad(load).map(({ id, plan }) => toRequest(id, plan))
const kill = killAfterSeconds === null ? undefined : setTimeout(killWorker, killAfterSeconds * 1000)
const [episodes, measured] = await measure(() => runner.runAll(requests, signal))
clearTimeout(kill)
const result: RunLoadResult = {
  ...measured,
  startSeconds,
  turns: episodes.reduce((sum, { trajectories }) => sum + (trajectories[0]?.turns.length ?? 0), 0),
  failed: episodes.filter(
    ({ stopReason, trajectories }, index) => stopReason !== 'completed' || trajectories[0]?.turns.length !== turnsOf(requests[index]!),
  ).length,
  lost: episodes.flatMap(({ rollout, attempt }) => (attempt > 0 ? [rollout] : [])),
}
process.stdout.write(`${JSON.stringify(result)}\n`)

function killWorker(): void {
  const worker = processTree(process.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('worker-process'))
  process.kill(worker!, 'SIGKILL')
}

function turnsOf({ task }: RolloutRequest): number {
  return String(task.input).split(' ').length - 1
}
