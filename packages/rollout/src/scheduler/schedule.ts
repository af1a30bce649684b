import { decideRetry } from '../retry-decision.ts'
import type { Job, SchedulerCommand, SchedulerEvent, SchedulerState, WorkerState } from './scheduler-state.ts'

/**
 * What happened at `now` (milliseconds of a clock that never goes back) changes `state`; what is to be done about it is returned. It waits
 * for nothing and has no timers: `wakeAt` says when it wants a tick.
 */
export function schedule(state: SchedulerState, event: SchedulerEvent, now: number): SchedulerCommand[] {
  const commands: SchedulerCommand[] = []
  react(state, event, now, commands)
  for (const key of state.waiting) {
    const job = state.jobs.get(key)!
    if (job.retryAt <= now) enqueue(state, job)
  }
  fillSlots(state, now, commands)
  return commands
}

/** When the next tick is due; `null` where nothing waits for a time. */
export function wakeAt({ jobs, waiting, workers }: SchedulerState): number | null {
  let at = Number.POSITIVE_INFINITY
  for (const key of waiting) at = Math.min(at, jobs.get(key)!.retryAt)
  for (const { deadline } of workers.values()) at = Math.min(at, deadline)
  return at === Number.POSITIVE_INFINITY ? null : at
}

function react(state: SchedulerState, event: SchedulerEvent, now: number, commands: SchedulerCommand[]): void {
  const { jobs, workers } = state
  const job = 'key' in event ? jobs.get(event.key) : undefined
  const worker = 'worker' in event ? workers.get(event.worker) : undefined
  switch (event.type) {
    case 'submit':
      if (!job) submit(state, event.key)
      break
    case 'cancel':
      if (job && !job.cancelled) cancel(state, job, commands)
      break
    case 'begun':
      if (job?.status === 'beginning') begun(state, job, event.attempt, commands)
      break
    case 'result':
      if (job?.status === 'running' && job.attempt === event.attempt && job.worker === event.worker) job.status = 'ending'
      else if (job?.status !== 'ending' || job.attempt !== event.attempt || job.worker !== event.worker)
        commands.push({ type: 'fence', worker: event.worker, key: event.key, attempt: event.attempt })
      break
    case 'ended':
      if (job?.status === 'ending' && job.attempt === event.attempt) ended(state, job, event, now, commands)
      break
    case 'closed':
      if (job) {
        release(state, job, commands)
        remove(state, job)
      }
      break
    case 'hello':
      hello(state, event, now, commands)
      break
    case 'beat':
      if (worker) worker.deadline = now + worker.leaseMs
      else commands.push({ type: 'dismiss', worker: event.worker })
      break
    case 'disconnect':
      if (worker) worker.isConnected = false
      break
    case 'drain':
      if (worker) worker.isDraining = true
      break
    case 'leave':
      if (worker) part(state, event.worker, worker, { isLoss: false }, commands)
      break
    case 'tick':
      for (const [name, each] of workers) {
        if (each.deadline > now) continue
        commands.push({ type: 'dismiss', worker: name })
        part(state, name, each, { isLoss: true }, commands)
      }
  }
}

function submit({ jobs, queue }: SchedulerState, key: string): void {
  jobs.set(key, {
    key,
    status: 'queued',
    attempt: null,
    worker: null,
    failures: 0,
    losses: 0,
    retryAt: 0,
    cancelled: false,
  })
  queue.add(key)
}

/** What runs is told to stop, and its result decides; what does not leaves at once. */
function cancel(state: SchedulerState, job: Job, commands: SchedulerCommand[]): void {
  job.cancelled = true
  if (job.status === 'running') commands.push({ type: 'stop', worker: job.worker!, key: job.key, attempt: job.attempt! })
  if (job.status === 'queued' || job.status === 'waiting') drop(state, job, commands)
}

function begun(state: SchedulerState, job: Job, attempt: number, commands: SchedulerCommand[]): void {
  job.attempt = attempt
  const name = job.worker!
  const worker = state.workers.get(name)
  if (job.cancelled) drop(state, job, commands)
  else if (!worker?.isConnected || worker.isDraining || !worker.jobs.has(job.key)) enqueue(state, job)
  else {
    job.status = 'running'
    commands.push({ type: 'assign', worker: name, key: job.key, attempt })
  }
}

function ended(
  state: SchedulerState,
  job: Job,
  { stopReason, error, attempt }: Extract<SchedulerEvent, { type: 'ended' }>,
  now: number,
  commands: SchedulerCommand[],
): void {
  const { key, failures, cancelled } = job
  const { retries, maxLosses } = state.limits
  const isLost = error?.code === 'WORKER_LOST'
  if (isLost) job.losses++
  const lostDelayMs = job.losses < maxLosses ? 0 : null
  const delayMs = isLost ? lostDelayMs : decideRetry({ stopReason, error, retried: failures, retries })
  if (delayMs === null || cancelled) {
    commands.push({ type: 'finish', key, attempt })
    return
  }
  commands.push({ type: 'supersede', key, attempt, error: error! })
  release(state, job, commands)
  if (!isLost) job.failures++
  job.status = 'waiting'
  job.retryAt = now + delayMs
  state.waiting.add(key)
}

function hello(
  state: SchedulerState,
  { worker: name, slots, leaseMs, holding }: Extract<SchedulerEvent, { type: 'hello' }>,
  now: number,
  commands: SchedulerCommand[],
): void {
  const { jobs, workers } = state
  const before = workers.get(name)?.jobs
  const worker: WorkerState = { slots, leaseMs, deadline: now + leaseMs, isConnected: true, isDraining: false, jobs: new Set(before) }
  workers.set(name, worker)
  const current = new Set<string>()
  for (const { key, attempt } of holding) {
    const job = jobs.get(key)
    if (job?.worker === name && job.attempt === attempt && (job.status === 'running' || job.status === 'ending')) current.add(key)
    else commands.push({ type: 'fence', worker: name, key, attempt })
  }
  for (const key of current) worker.jobs.add(key)
  for (const key of before ?? []) {
    const job = jobs.get(key)!
    if (job.status === 'running' && !current.has(key)) lose(state, job, { isLoss: true }, commands)
  }
}

/** The worker is no more; what it had begins again. What has its result already goes on. */
function part(state: SchedulerState, name: string, worker: WorkerState, how: { isLoss: boolean }, commands: SchedulerCommand[]): void {
  state.workers.delete(name)
  for (const key of worker.jobs) {
    const job = state.jobs.get(key)!
    if (job.status === 'running') lose(state, job, how, commands)
  }
}

function lose(state: SchedulerState, job: Job, { isLoss }: { isLoss: boolean }, commands: SchedulerCommand[]): void {
  const { key, attempt } = job
  if (isLoss) job.losses++
  const isLast = !job.cancelled && job.losses >= state.limits.maxLosses
  commands.push({ type: 'revoke', key, attempt: attempt!, isLast })
  leaveWorker(state, job)
  if (job.cancelled) drop(state, job, commands)
  else if (isLast) job.status = 'ending'
  else enqueue(state, job)
}

/** The job is first in line for a slot: it was begun before. */
function enqueue(state: SchedulerState, job: Job): void {
  leaveWorker(state, job)
  job.status = 'queued'
  state.waiting.delete(job.key)
  state.again.add(job.key)
}

function drop(state: SchedulerState, job: Job, commands: SchedulerCommand[]): void {
  remove(state, job)
  commands.push({ type: 'drop', key: job.key })
}

function remove(state: SchedulerState, job: Job): void {
  leaveWorker(state, job)
  state.jobs.delete(job.key)
  for (const line of [state.again, state.queue, state.waiting]) line.delete(job.key)
}

/** The worker may forget the result of the attempt, and its slot is free. */
function release(state: SchedulerState, job: Job, commands: SchedulerCommand[]): void {
  const { key, attempt, worker, status } = job
  if (worker !== null && attempt !== null && status === 'ending') commands.push({ type: 'kept', worker, key, attempt })
  leaveWorker(state, job)
}

function leaveWorker({ workers }: SchedulerState, job: Job): void {
  if (job.worker !== null) workers.get(job.worker)?.jobs.delete(job.key)
  job.worker = null
}

function fillSlots(state: SchedulerState, now: number, commands: SchedulerCommand[]): void {
  const { jobs, workers, again, queue } = state
  for (const line of [again, queue]) {
    for (const key of line) {
      const name = freest(workers, now)
      if (name === null) return
      line.delete(key)
      const job = jobs.get(key)!
      job.status = 'beginning'
      job.worker = name
      workers.get(name)!.jobs.add(key)
      commands.push({ type: 'begin', key })
    }
  }
}

/** The worker with the most free slots that takes work. */
function freest(workers: SchedulerState['workers'], now: number): string | null {
  let best: string | null = null
  let most = 0
  for (const [name, { slots, jobs, isConnected, isDraining, deadline }] of workers) {
    const free = slots - jobs.size
    if (free <= most || !isConnected || isDraining || deadline <= now) continue
    best = name
    most = free
  }
  return best
}
