import type { AttemptName } from '@aworld-train/protocol'
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
    if (job.dueAt <= now) enqueue(state, job)
  }
  for (const key of state.stopping) {
    const job = state.jobs.get(key)!
    if (job.dueAt <= now) lose(state, job, { isLoss: false }, commands)
  }
  fillSlots(state, now, commands)
  return commands
}

/** When the next tick is due; `null` where nothing waits for a time. */
export function wakeAt({ jobs, waiting, stopping, workers }: SchedulerState): number | null {
  let at = Number.POSITIVE_INFINITY
  for (const keys of [waiting, stopping]) for (const key of keys) at = Math.min(at, jobs.get(key)!.dueAt)
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
      if (job && !job.cancelled) cancel(state, job, now, commands)
      break
    case 'begun':
      if (job?.status === 'beginning') begun(state, job, event.attempt, commands)
      break
    case 'result':
      if (job?.status === 'running' && job.attempt === event.attempt && job.worker === event.worker) {
        job.status = 'ending'
        state.stopping.delete(job.key)
      } else if (job?.status !== 'ending' || job.attempt !== event.attempt || job.worker !== event.worker)
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
      if (!worker) {
        commands.push({ type: 'dismiss', worker: event.worker })
        break
      }
      worker.deadline = now + worker.terms.leaseMs
      fenceOthers(state, event, commands)
      break
    case 'disconnect':
      if (!worker) break
      worker.isConnected = false
      worker.deadline = Math.min(worker.deadline, now + worker.terms.graceMs)
      break
    case 'drain':
      if (worker) worker.isDraining = true
      break
    case 'leave':
      if (worker) part(state, event.worker, worker, { isLoss: false }, commands)
      break
    case 'exit':
      if (worker) part(state, event.worker, worker, { isLoss: true }, commands)
      break
    case 'tick':
      for (const [name, each] of workers) {
        if (event.isLate) each.deadline = Math.max(each.deadline, now + each.terms.graceMs)
        if (each.deadline <= now) part(state, name, each, { isLoss: true }, commands)
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
    dueAt: 0,
    cancelled: false,
  })
  queue.add(key)
}

/** What runs is told to stop, and its result decides where it comes in time; what does not, or cannot be told, leaves at once. */
function cancel(state: SchedulerState, job: Job, now: number, commands: SchedulerCommand[]): void {
  job.cancelled = true
  if (job.status === 'running') {
    const worker = state.workers.get(job.worker!)
    commands.push({ type: 'stop', worker: job.worker!, key: job.key, attempt: job.attempt! })
    job.dueAt = worker?.isConnected ? now + worker.terms.stopMs : now
    state.stopping.add(job.key)
  }
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
  const { retries } = state.limits
  // Lost workers have a budget of their own, which is spent.
  const delayMs = error?.code === 'WORKER_LOST' ? null : decideRetry({ stopReason, error, retried: failures, retries })
  if (delayMs === null || cancelled) {
    commands.push({ type: 'finish', key, attempt })
    return
  }
  commands.push({ type: 'supersede', key, attempt, error: error! })
  release(state, job, commands)
  job.failures++
  job.status = 'waiting'
  job.dueAt = now + delayMs
  state.waiting.add(key)
}

/** A worker that comes again has lost, with its connection, at most what it was assigned last; another one of its name has nothing. */
function hello(
  state: SchedulerState,
  { type: _, worker: name, incarnation, isDraining, holding, ...terms }: Extract<SchedulerEvent, { type: 'hello' }>,
  now: number,
  commands: SchedulerCommand[],
): void {
  const { jobs, workers } = state
  const before = workers.get(name)
  const isSame = before?.incarnation === incarnation
  const worker: WorkerState = {
    ...{ terms, incarnation, deadline: now + terms.leaseMs },
    ...{ isConnected: true, isDraining, jobs: new Set(before?.jobs) },
  }
  workers.set(name, worker)
  const current = fenceOthers(state, { worker: name, holding }, commands)
  for (const key of current) worker.jobs.add(key)
  for (const key of worker.jobs) {
    const job = jobs.get(key)!
    if (job.status === 'running' && !current.has(key)) lose(state, job, { isLoss: !isSame }, commands)
  }
}

/** Rollouts whose current attempt the worker has; whatever else it has is not its own any more. */
function fenceOthers(
  { jobs }: SchedulerState,
  { worker, holding }: { readonly worker: string; readonly holding: readonly AttemptName[] },
  commands: SchedulerCommand[],
): Set<string> {
  const current = new Set<string>()
  for (const { key, attempt } of holding) {
    const job = jobs.get(key)
    if (job?.worker === worker && job.attempt === attempt && (job.status === 'running' || job.status === 'ending')) current.add(key)
    else commands.push({ type: 'fence', worker, key, attempt })
  }
  return current
}

/** The worker is no more; what it had begins again. What has its result already goes on. */
function part(state: SchedulerState, name: string, worker: WorkerState, how: { isLoss: boolean }, commands: SchedulerCommand[]): void {
  state.workers.delete(name)
  commands.push({ type: 'dismiss', worker: name })
  for (const key of worker.jobs) {
    const job = state.jobs.get(key)!
    if (job.status === 'running') lose(state, job, how, commands)
  }
}

function lose(state: SchedulerState, job: Job, { isLoss }: { isLoss: boolean }, commands: SchedulerCommand[]): void {
  const { key } = job
  const worker = job.worker!
  const attempt = job.attempt!
  if (isLoss) job.losses++
  const isLast = !job.cancelled && job.losses >= state.limits.maxLosses
  commands.push({ type: 'fence', worker, key, attempt }, { type: 'revoke', worker, key, attempt, isLast })
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
  for (const line of [state.again, state.queue, state.waiting, state.stopping]) line.delete(job.key)
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
  const { jobs, workers, again, queue, waiting, limits } = state
  for (const line of [again, queue]) {
    for (const key of line) {
      const taken = jobs.size - again.size - queue.size - waiting.size
      const name = taken < limits.concurrency ? freest(workers, now) : null
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
  for (const [name, { terms, jobs, isConnected, isDraining, deadline }] of workers) {
    const free = terms.slots - jobs.size
    if (free <= most || !isConnected || isDraining || deadline - terms.graceMs <= now) continue
    best = name
    most = free
  }
  return best
}
