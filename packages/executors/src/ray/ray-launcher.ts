import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorMessage, type LaunchedWorker, type Launcher, type LauncherEngine, TrainError, type WorkerLaunch } from '@aworld-train/core'
import { z } from 'zod'
import { createJobsApi, type JobsApi, type RayJob } from './jobs-api.ts'
import { readRaySettings } from './options.ts'

const pollMs = 1_000
/** A job that ends sooner than this has failed to start. */
const shortLifeMs = 20_000
/** After this many short lives in a row no more jobs are submitted. */
const maxShortLives = 3
/** Exit code of a job that only another configuration helps. */
const misuse = 2

/** The job's printed report on a worker. */
const Report = z.union([
  z.object({ failed: z.string() }),
  z.object({ name: z.string(), state: z.enum(['starting', 'running', 'ended']), how: z.string(), printed: z.string() }),
])

const program = () => readFileSync(new URL('../../python/ray/launch.py', import.meta.url), 'utf8')

const isLoopbackAddress = (address: string) => /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])(:|\/|$)/.test(address)

/** Engine "ray": a job of Ray's Jobs API starts workers as actors. */
export const rayEngine: LauncherEngine = {
  name: 'ray',
  isElsewhere: (settings) => !isLoopbackAddress(readRaySettings(settings).address),
  create: createRayLauncher,
}

/** Starts workers as actors of Ray. Workers that start together share one job, which is submitted again when it dies. */
export function createRayLauncher(launch: WorkerLaunch): Launcher {
  const { workerNum, worker, onWarning, onFailed } = launch
  const { address, options, resources } = readRaySettings(launch)
  const api: JobsApi = createJobsApi(address)
  const group = `aworld-train-${randomUUID()}`
  const stopping = new AbortController()
  const jobs = new Set<string>()
  const following = new Set<Promise<void>>()
  /** Workers in the order of their start. */
  const workers = new Map<string, LaunchedWorker>()
  /** The job that started each worker, which is the namespace of its actor. */
  const jobOf = new Map<string, string>()
  let names = 0
  let submissions = 0

  const entry = (name: string) => {
    const { command, env } = worker(name)
    return { name, command, env: { ...env } }
  }

  /** Submits a job that starts workers and makes others finish and leave. */
  async function submit(start: readonly string[], drain: readonly string[] = []): Promise<string> {
    const id = `${group}-${submissions++}`
    const drained = drain.map((name) => ({ name, namespace: jobOf.get(name) }))
    const plan = JSON.stringify({ namespace: id, start: start.map(entry), drain: drained, resources })
    const entrypoint = `${options.python} -c "import os; exec(os.environ['AWORLD_TRAIN_PROGRAM'])"`
    const variables = { AWORLD_TRAIN_PROGRAM: program(), AWORLD_TRAIN_LAUNCH: plan }
    await api.submit({ submission_id: id, entrypoint, runtime_env: { env_vars: variables } }, stopping.signal)
    jobs.add(id)
    for (const name of start) jobOf.set(name, id)
    return id
  }

  const update = (name: string, change: (before: LaunchedWorker) => Partial<LaunchedWorker>) => {
    const before = workers.get(name)
    if (before) workers.set(name, { ...before, ...change(before) })
  }

  /** Reads what a job has printed after `from`. Resolves to where that ends. */
  async function readReports(id: string, from: number): Promise<number> {
    const logs = await api.logs(id)
    const end = logs.lastIndexOf('\n') + 1
    for (const line of logs.slice(from, end).split('\n')) {
      if (!line.startsWith('AWORLD_TRAIN {')) continue
      const report = Report.parse(JSON.parse(line.slice('AWORLD_TRAIN '.length)))
      if ('failed' in report) {
        onFailed(new TrainError('CONFIG_INVALID', report.failed))
        continue
      }
      const { name, state, how, printed } = report
      update(name, ({ restarts }) => ({ state, restarts: restarts + (state === 'starting' ? 1 : 0) }))
      if (state === 'starting')
        onWarning(`Worker "${name}" ${how} and is started again.${printed.trim() === '' ? '' : ` It printed: ${printed.trim()}`}`)
    }
    return Math.max(from, end)
  }

  /** Follows a job until it ends. Resolves to its end; `null` if workers are being stopped. */
  async function followOnce(id: string, mine: readonly string[]): Promise<RayJob | null> {
    let read = 0
    let placedBy: number | null = performance.now() + options.placementMs
    for (;;) {
      await sleep(pollMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return null
      try {
        const job = await api.job(id)
        read = await readReports(id, read)
        if (job.status !== 'PENDING' && job.status !== 'RUNNING') return job
      } catch (error) {
        // A restarting head node is no reason to end. Its answer is waited for.
        onWarning(`Ray was asked for its job: ${errorMessage(error)}`)
        await sleep(10 * pollMs, undefined, { signal: stopping.signal }).catch(() => {})
      }
      if (placedBy === null || performance.now() < placedBy) continue
      placedBy = null
      const waiting = mine.filter((name) => workers.get(name)?.state === 'starting')
      if (waiting.length > 0)
        onWarning(
          `Ray has no place yet for ${waiting.length} of ${mine.length} workers (${waiting.join(', ')}), each with ${JSON.stringify(resources)}; "ray status" says what is free. Lower executor.resources or workerNum, or add nodes.`,
        )
    }
  }

  async function follow(id: string, mine: readonly string[]): Promise<void> {
    for (let shortLives = 0, current = id; ; ) {
      const startedAt = performance.now()
      const end = await followOnce(current, mine)
      if (end === null) return
      jobs.delete(current)
      const staying = mine.filter((name) => workers.has(name))
      for (const name of staying) update(name, () => ({ state: 'ended' }))
      if (mine.length === 0 && end.status === 'FAILED') onWarning(`Ray could not have workers leave: ${end.message?.trim()}`)
      if (staying.length === 0 || (end.status === 'FAILED' && end.driver_exit_code === misuse)) return
      const message = `The job of Ray that runs ${staying.length} workers ended (${end.status}${end.message ? `: ${end.message.trim()}` : ''})`
      shortLives = performance.now() - startedAt < shortLifeMs ? shortLives + 1 : 0
      if (shortLives >= maxShortLives) {
        onFailed(new TrainError('CONFIG_INVALID', `${message} ${shortLives} times in a row, each soon after its start.`))
        return
      }
      onWarning(`${message} and is submitted again.`)
      try {
        current = await submit(staying)
      } catch (error) {
        if (!stopping.signal.aborted) onFailed(error as Error)
        return
      }
      for (const name of staying) update(name, ({ restarts }) => ({ state: 'starting', restarts: restarts + 1 }))
    }
  }

  async function scale(count: number): Promise<void> {
    const all = [...workers.keys()]
    const leaving = all.slice(count)
    const added = Array.from({ length: Math.max(0, count - all.length) }, () => `ray-${names++}`)
    if (leaving.length + added.length === 0) return
    for (const name of leaving) workers.delete(name)
    for (const name of added) workers.set(name, { name, state: 'starting', restarts: 0 })
    const id = await submit(added, leaving)
    const done = follow(id, added)
    following.add(done)
    void done.finally(() => following.delete(done))
  }

  return {
    async plan() {
      const version = await api.version()
      const each = Object.entries(resources).map(([key, value]) => `${key} ${JSON.stringify(value)}`)
      return [`${workerNum} worker${workerNum === 1 ? '' : 's'} as actors of Ray ${version} at ${address}, each with ${each.join(', ')}`]
    },
    start: () => scale(workerNum),
    scale,
    status: async () => [...workers.values()],
    async stop() {
      workers.clear()
      stopping.abort()
      await Promise.all(following)
      await Promise.all([...jobs].map((id) => stopJob(api, id)))
    },
  }
}

/** Stops a job and waits until it has ended. If Ray no longer answers for it, it is left alone. */
async function stopJob(api: JobsApi, id: string): Promise<void> {
  try {
    await api.stop(id)
    for (let tries = 0; tries < 60; tries++) {
      const { status } = await api.job(id)
      if (status !== 'PENDING' && status !== 'RUNNING') return
      await sleep(500)
    }
  } catch (error) {
    process.stderr.write(
      `The job ${id} of Ray could not be stopped: ${errorMessage(error)} Its workers leave when their coordinator is gone.\n`,
    )
  }
}
