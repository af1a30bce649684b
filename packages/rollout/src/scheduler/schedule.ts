import type { AttemptName } from '@aworld-train/core'
import { decideRetry } from '../retry-decision.ts'
import type { Job, SchedulerCommand, SchedulerEvent, SchedulerState, WorkerState } from './scheduler-state.ts'

/**
 * A rollout that was lost with this many workers is a suspect: it may be what ended them, so it gets its next worker for itself. `together`
 * counts losses beside those of other workers, which may have had a common cause.
 */
const suspectAfter = { lone: 3, together: 9 }
/** Share of the grace within which losses count as one: a rollout may begin again on a worker that has ended too, unnoticed so far. */
const oneLoss = 0.1

/**
 * Applies an event at `now` (milliseconds of a monotonic clock) to `state` and returns the commands that follow. It never waits and has no
 * timers; `wakeAt` says when it wants a tick.
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
    if (job.dueAt <= now) lose(state, job, noLoss, commands)
  }
  for (const key of state.doubted) {
    const job = state.jobs.get(key)!
    if (job.dueAt <= now) decide(state, job, commands)
  }
  fillSlots(state, now, commands)
  return commands
}

export type Schedule = typeof schedule

/** Time of the next tick; `null` where nothing waits for a time. */
export function wakeAt({ jobs, waiting, stopping, doubted, workers }: SchedulerState): number | null {
  let at = Number.POSITIVE_INFINITY
  for (const keys of [waiting, stopping, doubted]) for (const key of keys) at = Math.min(at, jobs.get(key)!.dueAt)
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
      if (job?.status === 'beginning') begun(state, job, event.attempt, now, commands)
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
      beat(state, worker, fenceOthers(state, event, commands), now, commands)
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
      if (worker) part(state, event.worker, worker, { isLoss: false, now }, commands)
      break
    case 'exit':
      if (worker) part(state, event.worker, worker, { isLoss: true, now }, commands)
      break
    case 'tick':
      for (const [name, each] of workers) {
        if (event.isLate) {
          each.deadline = Math.max(each.deadline, now + each.terms.graceMs)
          for (const key of each.jobs) jobs.get(key)!.namedUntil = each.deadline
        }
        if (each.deadline <= now) part(state, name, each, { isLoss: true, now }, commands)
      }
  }
}

function submit({ jobs, queue }: SchedulerState, key: string): void {
  jobs.set(key, {
    key,
    status: 'queued',
    attempt: null,
    worker: null,
    isAlone: false,
    failures: 0,
    deaths: 0,
    lostAt: Number.NEGATIVE_INFINITY,
    deathsAt: [],
    lossesAt: [],
    dueAt: 0,
    namedUntil: 0,
    cancelled: false,
  })
  queue.add(key)
}

/**
 * Tells a running job to stop and waits for its result for a limited time. A job that waits, or whose worker
 * cannot be told, leaves at once.
 */
function cancel(state: SchedulerState, job: Job, now: number, commands: SchedulerCommand[]): void {
  job.cancelled = true
  if (job.status === 'running') {
    const worker = state.workers.get(job.worker!)
    commands.push({ type: 'stop', worker: job.worker!, key: job.key, attempt: job.attempt! })
    job.dueAt = worker?.isConnected ? now + worker.terms.stopMs : now
    state.stopping.add(job.key)
  }
  if (job.status === 'doubted') revoke(state, job, { isLast: false }, commands)
  if (job.status === 'queued' || job.status === 'waiting' || job.status === 'doubted') drop(state, job, commands)
}

function begun(state: SchedulerState, job: Job, attempt: number, now: number, commands: SchedulerCommand[]): void {
  job.attempt = attempt
  const name = job.worker!
  const worker = state.workers.get(name)
  if (job.cancelled) drop(state, job, commands)
  else if (!worker?.isConnected || worker.isDraining || !worker.jobs.has(job.key)) enqueue(state, job)
  else {
    job.status = 'running'
    job.namedUntil = now + worker.terms.leaseMs
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
  // Lost workers have a budget of their own, and it is spent.
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

/** A worker that reconnects may have lost its last assignment; a new process under the same name holds nothing. */
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
    terms,
    incarnation,
    deadline: now + terms.leaseMs,
    isConnected: true,
    isDraining,
    jobs: new Set(before?.jobs),
  }
  workers.set(name, worker)
  const current = fenceOthers(state, { worker: name, holding }, commands)
  for (const key of current) {
    worker.jobs.add(key)
    jobs.get(key)!.namedUntil = worker.deadline
  }
  const loss = before && !isSame ? noteLoss(state, before, now) : noLoss
  for (const key of worker.jobs) {
    const job = jobs.get(key)!
    if (job.status === 'running' && !current.has(key)) lose(state, job, loss, commands)
  }
}

/** A job that its worker has not named for a lease begins again, because nobody runs it. */
function beat(state: SchedulerState, worker: WorkerState, named: ReadonlySet<string>, now: number, commands: SchedulerCommand[]): void {
  const { graceMs } = worker.terms
  for (const key of worker.jobs) {
    const job = state.jobs.get(key)!
    if (named.has(key)) job.namedUntil = worker.deadline
    else if (job.status === 'running' && job.namedUntil <= now) lose(state, job, { isLoss: true, isLone: true, graceMs, now }, commands)
  }
}

/** Returns the rollouts whose current attempt the worker holds, and fences everything else that it holds. */
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

interface Loss {
  /** Whether the worker ended while it had the job, rather than leaving on its own word. */
  readonly isLoss: boolean
  /** Whether the worker's own jobs may have ended it, because no other worker was lost within the grace. */
  readonly isLone: boolean
  readonly graceMs: number
  readonly now: number
}

const noLoss: Loss = { isLoss: false, isLone: false, graceMs: 0, now: 0 }

/** Removes a worker. Its jobs begin again, except those that already have their result. */
function part(
  state: SchedulerState,
  name: string,
  worker: WorkerState,
  { isLoss, now }: Pick<Loss, 'isLoss' | 'now'>,
  commands: SchedulerCommand[],
): void {
  state.workers.delete(name)
  commands.push({ type: 'dismiss', worker: name })
  const loss = isLoss ? noteLoss(state, worker, now) : noLoss
  for (const key of worker.jobs) {
    const job = state.jobs.get(key)!
    if (job.status === 'running') lose(state, job, loss, commands)
  }
}

/**
 * Judges the loss of a worker. Workers lost together may have had a common cause, which clears their rollouts, unless one of these has just
 * moved from one worker to the other. The loss of a worker without a suspect clears the suspects' losses within the grace.
 */
function noteLoss(state: SchedulerState, worker: WorkerState, now: number): Loss {
  const { graceMs } = worker.terms
  const since = now - graceMs
  const isFirst = state.othersLostAt < since
  if (hasSuspect(state, worker)) return { isLoss: true, isLone: isFirst, graceMs, now }
  const hasMoved = ({ lostAt }: Job) => lostAt > since && lostAt <= now - oneLoss * graceMs
  const isLone = isFirst || [...worker.jobs].some((key) => hasMoved(state.jobs.get(key)!))
  state.othersLostAt = now
  for (const job of state.jobs.values()) {
    if (job.lostAt <= since) continue
    job.lossesAt = job.lossesAt.filter((at) => at <= since)
    if (!isLone) job.deathsAt = job.deathsAt.filter((at) => at <= since)
  }
  return { isLoss: true, isLone, graceMs, now }
}

/** Begins the attempt again. A suspect's begins again only after the grace, in which the loss of another worker would clear it. */
function lose(state: SchedulerState, job: Job, { isLoss, isLone, graceMs, now }: Loss, commands: SchedulerCommand[]): void {
  const { key, isAlone, cancelled } = job
  const worker = job.worker!
  commands.push({ type: 'fence', worker, key, attempt: job.attempt! })
  if (isLoss && job.lostAt <= now - oneLoss * graceMs) {
    job.deaths++
    if (isLone && isAlone) job.lossesAt = [...job.lossesAt, now]
    if (isLone && !isAlone) job.deathsAt = [...job.deathsAt, now]
  }
  if (isLoss) job.lostAt = now
  if (isLoss && isAlone && !cancelled) {
    state.workers.get(worker)?.jobs.delete(key)
    job.status = 'doubted'
    job.dueAt = now + graceMs
    state.doubted.add(key)
    return
  }
  revoke(state, job, { isLast: false }, commands)
  if (cancelled) drop(state, job, commands)
  else enqueue(state, job)
}

function decide(state: SchedulerState, job: Job, commands: SchedulerCommand[]): void {
  const isLast = job.lossesAt.length >= state.limits.maxLosses
  state.doubted.delete(job.key)
  revoke(state, job, { isLast }, commands)
  if (isLast) job.status = 'ending'
  else enqueue(state, job)
}

function revoke(state: SchedulerState, job: Job, { isLast }: { isLast: boolean }, commands: SchedulerCommand[]): void {
  commands.push({ type: 'revoke', worker: job.worker!, key: job.key, attempt: job.attempt!, isLast })
  leaveWorker(state, job)
}

/** Puts the job first in line for a slot, because it was begun before. */
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
  for (const line of [state.again, state.queue, state.waiting, state.stopping, state.doubted]) line.delete(job.key)
}

/** Frees the job's slot, and lets the worker forget the result of the attempt. */
function release(state: SchedulerState, job: Job, commands: SchedulerCommand[]): void {
  const { key, attempt, worker, status } = job
  if (worker !== null && attempt !== null && status === 'ending') commands.push({ type: 'kept', worker, key, attempt })
  leaveWorker(state, job)
}

function leaveWorker({ workers }: SchedulerState, job: Job): void {
  if (job.worker !== null) workers.get(job.worker)?.jobs.delete(job.key)
  job.worker = null
  job.isAlone = false
}

export const isSuspect = ({ deaths, deathsAt, lossesAt }: Job): boolean =>
  deathsAt.length >= suspectAfter.lone || deaths >= suspectAfter.together || lossesAt.length > 0

/** Whether a suspect has the worker for itself. */
function hasSuspect({ jobs }: SchedulerState, worker: WorkerState): boolean {
  for (const key of worker.jobs) return jobs.get(key)!.isAlone
  return false
}

function fillSlots(state: SchedulerState, now: number, commands: SchedulerCommand[]): void {
  const { jobs, workers, again, queue, waiting, doubted, limits } = state
  const suspects = [...again].filter((key) => isSuspect(jobs.get(key)!))
  const kept = keepForSuspects(state, suspects.length, now)
  const emptied = [...kept].filter((name) => workers.get(name)!.jobs.size === 0)
  for (const line of [suspects, again, queue]) {
    for (const key of line) {
      const job = jobs.get(key)!
      if (line === again && isSuspect(job)) continue
      const taken = jobs.size - again.size - queue.size - waiting.size - doubted.size
      const name = taken >= limits.concurrency ? null : line === suspects ? (emptied.shift() ?? null) : freest(state, kept, now)
      if (name === null) break
      again.delete(key)
      queue.delete(key)
      job.status = 'beginning'
      job.worker = name
      job.isAlone = line === suspects
      workers.get(name)!.jobs.add(key)
      commands.push({ type: 'begin', key })
    }
  }
}

/**
 * Chooses the workers that take nothing more until suspects have them for themselves: those with the least to do. If there are several
 * workers, one goes on without suspects, which shows whether something else ends workers.
 */
function keepForSuspects(state: SchedulerState, suspects: number, now: number): ReadonlySet<string> {
  const able = suspects === 0 ? [] : [...state.workers].filter(([, worker]) => takesWork(worker, now))
  const free = able.filter(([, worker]) => !hasSuspect(state, worker)).sort(([, a], [, b]) => a.jobs.size - b.jobs.size)
  const most = Math.max(1, able.length - 1) - (able.length - free.length)
  return new Set(free.slice(0, Math.max(0, Math.min(suspects, most))).map(([name]) => name))
}

const takesWork = ({ isConnected, isDraining, deadline, terms }: WorkerState, now: number) =>
  isConnected && !isDraining && deadline - terms.graceMs > now

/** The worker with the most free slots that takes work. */
function freest(state: SchedulerState, kept: ReadonlySet<string>, now: number): string | null {
  let best: string | null = null
  let most = 0
  for (const [name, worker] of state.workers) {
    const free = worker.terms.slots - worker.jobs.size
    if (free <= most || !takesWork(worker, now) || kept.has(name) || hasSuspect(state, worker)) continue
    best = name
    most = free
  }
  return best
}
