import type { AttemptName, ErrorRecord, StopReason } from '@aworld-train/protocol'
import { schedule } from '../scheduler/schedule.ts'
import { createSchedulerState, type SchedulerCommand, type SchedulerEvent, type SchedulerState } from '../scheduler/scheduler-state.ts'
import { drawRates } from './draw-rates.test-support.ts'
import type { Invariant, PlantedBug } from './planted-bugs.test-support.ts'
import { createRandom, createVirtualTime } from './virtual-time.test-support.ts'
import type { Job, Worker } from './worker-state.test-support.ts'

// A coordinator (scheduler, sessions, store) and its workers, with everything that fails drawn from one seed. Times are seconds. Up to
// `healSeconds` things fail and only safety is asked for; after that nothing fails any more, and every rollout must be answered.

const leaseSeconds = 30
const graceSeconds = 15
const stopSeconds = 5
const healSeconds = 300
const limitSeconds = 1_500
const slots = 3
const workerCount = 4
const rolloutCount = 24
const limits = { retries: 2, maxLosses: 3, concurrency: 10 }

interface Row {
  attempt: number
  result: { readonly attempt: number; readonly stopReason: StopReason; readonly reward: number | null } | null
}

export interface Simulated {
  /** The first invariant that was broken. */
  readonly broken: Invariant | null
  /** How often each named state was reached. */
  readonly states: Readonly<Record<string, number>>
  readonly events: number
}

/** What is written at once. */
type Commit = 'submission' | 'release' | 'begin' | 'turn' | 'result' | 'superseded attempt'

const terms = { slots, leaseMs: leaseSeconds * 1000, graceMs: graceSeconds * 1000, stopMs: stopSeconds * 1000 }
const idOf = ({ key, attempt }: AttemptName) => `${key}#${attempt}`
const passing: ErrorRecord = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'The server ended.' }
const lost: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: true, message: 'Lost.' }

export function simulate(seed: number, bug: PlantedBug | null = null): Simulated {
  const random = createRandom(seed)
  const time = createVirtualTime()
  const { now, at, after } = time
  const states: Record<string, number> = {}
  const reach = (state: string) => {
    states[state] = (states[state] ?? 0) + 1
  }
  let broken: Invariant | null = null
  const must = (holds: boolean, invariant: Invariant) => {
    if (!holds) broken ??= invariant
  }
  const rates = drawRates(random)
  const isFaulty = () => now() < healSeconds
  const run = bug?.schedule ?? schedule

  // What is on disk, and what was said about it.
  const rows = new Map<string, Row>()
  const queued = new Set<string>()
  const receipts = new Set<string>()
  const turns = new Set<string>()
  const answeredTurns: string[] = []
  const answers = new Map<string, 'done' | 'cancelled'>()
  const numbers = new Set<string>()
  const keys = Array.from({ length: rolloutCount }, (_, index) => `r${index}`)
  /** Rollouts that their client wants no more. */
  const unwanted = new Set<string>()

  // The coordinator's memory.
  let epoch = 0
  let isCoordinatorUp = true
  let state: SchedulerState = createSchedulerState(limits)
  let urls = new Set<string>()
  let assigned = new Map<string, string>()
  let dealtWith = new Set<string>()
  let submitted: string[] = []
  /** Connections that a worker has greeted on, and that are not heard to have ended. */
  let greeted = new Map<string, number>()
  /** Starts of workers that take nothing more. */
  const drained = new Set<string>()
  /** When a worker that is not heard of by then may lose what it has. */
  let leases = new Map<string, number>()
  let cancelledAt = new Map<string, number>()
  /** Cancelled rollouts of which nothing runs any more, and those that are not queued on disk any more. */
  let stopped = new Set<string>()
  let released = new Set<string>()
  /** Rollouts whose last attempt is being put on record, and how the next one begins after that. */
  let superseding = new Map<string, (() => void) | null>()
  /** A worker that speaks just now, and what it says that it has. */
  let greeting: { readonly name: string; readonly holding: ReadonlySet<string> } | null = null
  let stillUntil = 0
  let lostKeys = new Set<string>()
  let endings = new Map<string, StopReason>()
  let events = 0

  const workers: Worker[] = Array.from({ length: workerCount }, (_, index) => ({
    name: `w${index}`,
    isUp: false,
    isGone: false,
    isDraining: false,
    start: 0,
    incarnation: '',
    connection: 0,
    stoppedUntil: 0,
    heardAt: 0,
    arrival: { up: 0, down: 0 },
    jobs: new Map(),
  }))
  const workerOf = (name: string) => workers.find((worker) => worker.name === name)!
  let connections = 0
  let incarnations = 0

  /** What comes to the coordinator while it stands still is dealt with when it goes on. */
  function whenAwake(act: () => void): void {
    if (now() < stillUntil) at(stillUntil + 0.001, () => whenAwake(act))
    else act()
  }

  /** A write: it may be cut off by a kill before it, between it and what follows from it, or come late from a process that is dead. */
  function commit<Result>(what: Commit, write: () => Result, then: (result: Result) => void): void {
    const own = epoch
    after(0.002 + random() * (isFaulty() ? rates.disk : 0.02), () => {
      if (own !== epoch) {
        if (random() < 0.5) return
        reach('committed, and the answer lost')
        write()
        return
      }
      if (isFaulty() && random() < rates.killedAtCommit) {
        const isWritten = random() < 0.5
        if (isWritten) write()
        else if (random() < rates.lateWrite) {
          reach('write of a dead coordinator comes late')
          after(random() * 20, write)
        }
        reach(isWritten ? 'killed between commit and answer' : 'killed before a commit')
        reach(`killed at the commit of a ${what}`)
        killCoordinator()
        return
      }
      const result = write()
      after(0.001, () => whenAwake(() => own === epoch && then(result)))
    })
  }

  function tell(event: SchedulerEvent): void {
    if (!isCoordinatorUp) return
    events++
    for (const command of run(state, event, now() * 1000)) carryOut(command)
  }

  const answer = (key: string, how: 'done' | 'cancelled') => void (answers.has(key) || answers.set(key, how))

  function carryOut(command: SchedulerCommand): void {
    if (command.type === 'dismiss') disconnect(workerOf(command.worker))
    if (command.type === 'begin') begin(command.key)
    if (command.type === 'drop') stop(command.key)
    if ('attempt' in command) carryOutFor(command)
  }

  function carryOutFor(command: Extract<SchedulerCommand, AttemptName>): void {
    const { type, key, attempt } = command
    const id = idOf(command)
    if (type === 'assign') assign(command.worker, { key, attempt })
    if (type === 'finish') finish({ key, attempt })
    if (type === 'fence') toWorker(command.worker, ({ jobs }) => jobs.delete(id))
    if (type === 'kept') {
      must(rows.get(key)?.result?.attempt === attempt || dealtWith.has(id), 'a worker forgets only what is dealt with')
      toWorker(command.worker, ({ jobs }) => jobs.delete(id))
    }
    if (type === 'stop') {
      reach('cancelled while it runs')
      toWorker(command.worker, ({ jobs }) => jobs.has(id) && Object.assign(jobs.get(id)!, { isCancelled: true }))
    }
    if (type === 'supersede') {
      reach('failed and tried again')
      dealtWith.add(id)
      supersede({ key, attempt })
      if (random() < rates.cancels / 10) after(0.05, () => cancel(key))
    }
    if (type === 'revoke') {
      const { worker } = command
      must(
        cancelledAt.has(key) || now() >= leases.get(worker)! || (greeting?.name === worker && !greeting.holding.has(id)),
        'an attempt is taken from its worker for a reason',
      )
      reach(command.isLast ? 'three workers lost' : 'attempt lost')
      close(command)
      if (!command.isLast) return
      lostKeys.add(key)
      conclude({ key, attempt }, 'failed', lost)
    }
  }

  /** Whoever cancels asks again until there is an answer. */
  function cancel(key: string): void {
    unwanted.add(key)
    if (!isCoordinatorUp) return
    const status = state.jobs.get(key)?.status
    if (!status) stop(key)
    else if (!cancelledAt.has(key)) {
      reach(`cancelled: ${status}`)
      cancelledAt.set(key, now())
      tell({ type: 'cancel', key })
    }
    commit(
      'release',
      () => queued.delete(key),
      () => {
        released.add(key)
        if (stopped.has(key)) answer(key, 'cancelled')
      },
    )
  }

  function stop(key: string): void {
    stopped.add(key)
    if (released.has(key)) answer(key, 'cancelled')
  }

  /** The next attempt begins when this one is on record. */
  function supersede({ key, attempt }: AttemptName): void {
    superseding.set(key, null)
    commit(
      'superseded attempt',
      () => rows.get(key)!.attempt === attempt,
      (isKept) => {
        const beginNext = superseding.get(key)
        superseding.delete(key)
        if (isKept) return beginNext?.()
        tell({ type: 'closed', key })
        submit(key)
      },
    )
  }

  function begin(key: string): void {
    must([...state.jobs.values()].filter(({ worker }) => worker !== null).length <= limits.concurrency, 'no more run than may')
    if (!submitted.includes(key)) reach('begun again')
    else {
      const waiting = submitted.filter((other) => state.queue.has(other))
      must(
        waiting.every((other) => submitted.indexOf(other) > submitted.indexOf(key)),
        'rollouts begin in their order',
      )
      submitted = submitted.filter((other) => other !== key)
    }
    if (superseding.has(key)) superseding.set(key, () => beginOnDisk(key))
    else beginOnDisk(key)
  }

  function beginOnDisk(key: string): void {
    commit(
      'begin',
      () => {
        const row = rows.get(key) ?? { attempt: -1, result: null }
        rows.set(key, row)
        if (row.result) return null
        if (bug?.world !== 'same attempt again' || row.attempt < 0) row.attempt++
        return row.attempt
      },
      (attempt) => {
        if (attempt === null) {
          answer(key, 'done')
          return tell({ type: 'closed', key })
        }
        must(!numbers.has(idOf({ key, attempt })), 'an attempt has a number of its own')
        numbers.add(idOf({ key, attempt }))
        tell({ type: 'begun', key, attempt })
      },
    )
  }

  function assign(name: string, { key, attempt }: AttemptName): void {
    must(greeted.has(name) && !drained.has(state.workers.get(name)!.incarnation), 'only a connected worker that takes work gets some')
    urls.add(idOf({ key, attempt }))
    assigned.set(key, `${name} ${attempt}`)
    toWorker(name, (worker) => {
      const running = [...worker.jobs.values()].filter((other) => other.stopReason === null)
      must(running.length < slots, 'a worker has no more than its slots')
      must(!worker.jobs.has(idOf({ key, attempt })), 'an attempt is assigned once')
      const job = { key, attempt, turnsLeft: 1 + Math.floor(random() * 5), stopReason: null, isCancelled: false }
      worker.jobs.set(idOf(job), job)
      takeTurn(worker, job)
    })
  }

  const close = (name: AttemptName) => void (bug?.world === 'URLs stay open' || urls.delete(idOf(name)))

  function conclude(name: AttemptName, stopReason: StopReason, error: ErrorRecord | undefined): void {
    const own = epoch
    after(0.01 + random(), () => whenAwake(() => own === epoch && tell({ ...name, type: 'ended', stopReason, error })))
    endings.set(idOf(name), stopReason)
  }

  function finish(name: AttemptName): void {
    const { key, attempt } = name
    const stopReason = endings.get(idOf(name))!
    close(name)
    if (stopReason === 'cancelled') {
      dealtWith.add(idOf(name))
      stop(key)
      tell({ type: 'closed', key })
      return
    }
    const zero = bug?.world === 'a lost worker scores 0' && lostKeys.has(key)
    const reward = stopReason === 'completed' ? 1 : zero ? 0 : null
    must(!lostKeys.has(key) || reward === null, 'a lost worker is no reward')
    commit(
      'result',
      () => {
        const row = rows.get(key)!
        const isCurrent = row.attempt === attempt && row.result === null
        if (!isCurrent) reach('store refused a result')
        if (!isCurrent && bug?.world !== 'results of any attempt') return false
        must(isCurrent, 'a rollout has one result, of its current attempt')
        row.result = { attempt, stopReason, reward }
        return true
      },
      (isKept) => {
        if (isKept) answer(key, 'done')
        else dealtWith.add(idOf(name))
        tell({ type: 'closed', key })
        if (!isKept) submit(key)
      },
    )
  }

  function killCoordinator(): void {
    if (!isCoordinatorUp) return
    reach('coordinator killed')
    epoch++
    isCoordinatorUp = false
    state = createSchedulerState(limits)
    urls = new Set()
    assigned = new Map()
    dealtWith = new Set()
    greeted = new Map()
    leases = new Map()
    cancelledAt = new Map()
    stopped = new Set()
    released = new Set()
    superseding = new Map()
    drained.clear()
    stillUntil = 0
    lostKeys = new Set()
    endings = new Map()
    submitted = []
    for (const worker of workers) disconnect(worker)
    after(1 + random() * 5, () => {
      isCoordinatorUp = true
      must(
        [...receipts].every((key) => queued.has(key) || rows.get(key)?.result || unwanted.has(key)),
        'what was answered is durable',
      )
      if (bug?.world !== 'queue is forgotten') for (const key of queued) if (!rows.get(key)?.result) submit(key)
    })
  }

  /** A client asks for its rollout until it has an answer, and submits it until that is accepted. */
  function ask(key: string): void {
    if (answers.has(key)) return
    if (isCoordinatorUp) {
      if (rows.get(key)?.result) answer(key, 'done')
      else if (unwanted.has(key)) cancel(key)
      else if (!receipts.has(key)) accept(key)
    }
    after(15, () => whenAwake(() => ask(key)))
  }

  function accept(key: string): void {
    submit(key)
    commit(
      'submission',
      () => queued.add(key),
      () => receipts.add(key),
    )
    if (bug?.world === '202 before commit') receipts.add(key)
  }

  function submit(key: string): void {
    if (!isCoordinatorUp || state.jobs.has(key) || answers.has(key)) return
    submitted.push(key)
    tell({ type: 'submit', key })
  }

  /** Messages of a connection arrive in order, unless it ends before. */
  function toWorker(name: string, take: (worker: Worker) => unknown): void {
    const worker = workerOf(name)
    const connection = greeted.get(name)
    if (worker.connection === 0 || worker.connection !== connection) return
    worker.arrival.down = Math.max(worker.arrival.down, now() + random() * latency())
    const arrive = () => {
      if (worker.connection !== connection || !worker.isUp) return
      if (worker.stoppedUntil > now()) at(worker.stoppedUntil, arrive)
      else take(worker)
    }
    at(worker.arrival.down, arrive)
  }

  function toCoordinator(worker: Worker, take: () => void): void {
    const { connection } = worker
    if (connection === 0) return
    worker.arrival.up = Math.max(worker.arrival.up, now() + random() * latency())
    at(worker.arrival.up, () => whenAwake(() => worker.connection === connection && isCoordinatorUp && take()))
  }

  const latency = () => (isFaulty() ? rates.delay : 0.1)
  const holding = ({ jobs }: Worker): AttemptName[] => Array.from(jobs.values(), ({ key, attempt }) => ({ key, attempt }))

  function connect(worker: Worker): void {
    if (!worker.isUp || worker.connection !== 0) return
    if (!isCoordinatorUp || worker.stoppedUntil > now()) {
      after(1 + random(), () => connect(worker))
      return
    }
    worker.connection = ++connections
    worker.arrival = { up: now(), down: now() }
    const has = holding(worker)
    const { incarnation, isDraining } = worker
    toCoordinator(worker, () => {
      worker.heardAt = now()
      greeted.set(worker.name, worker.connection)
      const isBeginning = [...(state.workers.get(worker.name)?.jobs ?? [])].some((key) => state.jobs.get(key)?.status === 'beginning')
      if (isBeginning) reach('hello while a rollout begins')
      const goesOn = has.some(({ key, attempt }) => state.jobs.get(key)?.attempt === attempt && state.jobs.get(key)?.worker === worker.name)
      if (goesOn) reach('reconnect keeps an attempt')
      if (has.some(({ key }) => !state.jobs.has(key) || !assigned.has(key))) reach('holds what nobody assigned')
      const before = state.workers.get(worker.name)
      if (
        before?.incarnation === incarnation &&
        before.jobs.size > has.length + [...before.jobs].filter((key) => state.jobs.get(key)!.status !== 'running').length
      )
        reach('assignment lost with its connection')
      if (before && before.incarnation !== incarnation && before.jobs.size > 0) reach('another start of a worker with work')
      if (isDraining) drained.add(incarnation)
      greeting = { name: worker.name, holding: new Set(has.map(idOf)) }
      tell({ ...terms, type: 'hello', worker: worker.name, incarnation, isDraining, holding: has })
      greeting = null
      leases.set(worker.name, now() + leaseSeconds)
    })
  }

  /** The coordinator hears of it, or, of a half-open connection, does not. */
  function disconnect(worker: Worker): void {
    const { connection } = worker
    if (connection === 0) return
    worker.connection = 0
    const own = epoch
    const isHalfOpen = isFaulty() && random() < 0.3
    if (isHalfOpen) reach('half-open connection')
    else {
      after(random() * 2, () => {
        whenAwake(() => {
          if (own !== epoch || greeted.get(worker.name) !== connection) return
          greeted.delete(worker.name)
          leases.set(worker.name, Math.min(leases.get(worker.name)!, now() + graceSeconds))
          tell({ type: 'disconnect', worker: worker.name })
        })
      })
    }
    after(0.1 + random() * (isFaulty() ? 60 * random() : 1), () => connect(worker))
  }

  function live(worker: Worker, start: number): void {
    if (worker.start !== start || !worker.isUp) return
    if (worker.stoppedUntil <= now()) {
      const has = holding(worker)
      if (worker.connection !== 0 && now() - worker.heardAt > leaseSeconds) disconnect(worker)
      if (worker.connection !== 0)
        toCoordinator(worker, () => {
          worker.heardAt = now()
          if (state.workers.has(worker.name)) leases.set(worker.name, now() + leaseSeconds)
          tell({ type: 'beat', worker: worker.name, holding: has })
        })
      if (worker.connection === 0 && now() - worker.heardAt > leaseSeconds && worker.jobs.size > 0) {
        reach('worker gives up what it has')
        worker.jobs.clear()
        worker.incarnation = `${worker.name} ${++incarnations}`
      }
      for (const job of worker.jobs.values()) if (job.stopReason) sendResult(worker, job)
      if (worker.isDraining && worker.jobs.size === 0 && worker.connection !== 0) leave(worker)
    }
    after(leaseSeconds / 3, () => live(worker, start))
  }

  function drain({ name }: Worker, incarnation: string): void {
    drained.add(incarnation)
    tell({ type: 'drain', worker: name })
  }

  function leave(worker: Worker): void {
    reach('worker left')
    toCoordinator(worker, () => {
      greeted.delete(worker.name)
      worker.connection = 0
      greeting = { name: worker.name, holding: new Set() }
      tell({ type: 'leave', worker: worker.name })
      greeting = null
    })
    const { start } = worker
    after(12, () => worker.start === start && stopProcess(worker, 5 + random() * 30))
  }

  function stopProcess(worker: Worker, restartSeconds: number): void {
    worker.isUp = false
    worker.start++
    worker.jobs = new Map()
    disconnect(worker)
    if (rates.launches) hearExit(worker, Math.min(1, restartSeconds))
    if (!worker.isGone) after(restartSeconds, () => startProcess(worker))
  }

  /** Before it starts the worker again. */
  function hearExit({ name }: Worker, withinSeconds: number): void {
    const own = epoch
    after(random() * withinSeconds, () => {
      whenAwake(() => {
        if (own !== epoch) return
        if (state.workers.get(name)?.jobs.size) reach('exit of a worker with work')
        greeted.delete(name)
        greeting = { name, holding: new Set() }
        tell({ type: 'exit', worker: name })
        greeting = null
      })
    })
  }

  function startProcess(worker: Worker): void {
    if (worker.isUp) return
    Object.assign(worker, {
      isUp: true,
      isDraining: false,
      heardAt: now(),
      stoppedUntil: 0,
      incarnation: `${worker.name} ${++incarnations}`,
    })
    connect(worker)
    live(worker, worker.start)
  }

  function takeTurn(worker: Worker, job: Job): void {
    const { start } = worker
    const next = () => {
      if (worker.start !== start || worker.jobs.get(idOf(job)) !== job) return
      if (worker.stoppedUntil > now()) return at(worker.stoppedUntil, next)
      if (rates.killer && job.key === 'r0') {
        reach('task kills its worker')
        return stopProcess(worker, 1 + random() * 5)
      }
      if (job.isCancelled) return end(worker, job, 'cancelled')
      after(random() * latency(), () => callModel(job))
      if (--job.turnsLeft > 0) return takeTurn(worker, job)
      end(worker, job, random() < rates.fails && isFaulty() ? 'failed' : 'completed')
    }
    after(0.5 + random() * 8, next)
  }

  function end(worker: Worker, job: Job, stopReason: StopReason): void {
    job.stopReason = stopReason
    sendResult(worker, job)
  }

  /** Results repeat until they are dealt with. */
  function sendResult(worker: Worker, job: Job): void {
    const { key, attempt } = job
    const { name } = worker
    toCoordinator(worker, () => {
      const before = state.jobs.get(key)
      const wasRunning = before?.status === 'running'
      if (before?.status === 'ending' && before.attempt === attempt) reach('result while it is dealt with')
      if (!before) reach('late duplicate')
      if (before && before.attempt !== attempt) reach('result after fence')
      tell({ type: 'result', worker: name, key, attempt })
      if (!wasRunning || state.jobs.get(key)?.status !== 'ending') return
      must(assigned.get(key) === `${name} ${attempt}`, 'an attempt is ended by the worker that has it')
      close(job)
      if (random() < rates.cancels / 10) after(0.005, () => cancel(key))
      conclude({ key, attempt: before.attempt! }, job.stopReason!, job.stopReason === 'failed' ? passing : undefined)
    })
  }

  /** A model call goes to its URL, not through the worker's connection. */
  function callModel(job: Job): void {
    if (now() < stillUntil) {
      whenAwake(() => callModel(job))
      return
    }
    const { key, attempt } = job
    const id = idOf({ key, attempt })
    if (!isCoordinatorUp || !urls.has(id)) {
      reach('call to a closed URL')
      return
    }
    const current = state.jobs.get(key)
    must(current?.attempt === attempt && current.status === 'running', 'an attempt that is over has no URLs')
    const turn = `${id} ${events} ${now()}`
    commit(
      'turn',
      () => {
        const isCurrent = rows.get(key)!.attempt === attempt
        if (!isCurrent) reach('store refused a turn')
        if (!isCurrent && bug?.world !== 'turns of any attempt') return false
        must(isCurrent, 'turns are those of the current attempt')
        turns.add(turn)
        return true
      },
      (isKept) => isKept && answeredTurns.push(turn),
    )
    if (bug?.world === 'answer before commit') answeredTurns.push(turn)
  }

  /** When it goes on, it sees that its clock is late before it reads what came meanwhile. */
  function standStill(seconds: number): void {
    if (!isCoordinatorUp || now() < stillUntil) return
    reach('coordinator stands still')
    const own = epoch
    stillUntil = now() + seconds
    after(seconds, () => {
      if (own !== epoch) return
      for (const [name, end] of leases) leases.set(name, Math.max(end, now() + graceSeconds))
      tell({ type: 'tick', isLate: true })
    })
  }

  function misfortune(): void {
    if (!isFaulty()) return
    for (const worker of workers) {
      if (worker.isUp && random() < rates.workerKilled) {
        reach('worker killed')
        worker.isGone = random() < 0.1 && workers.filter(({ isGone }) => !isGone).length > 2
        if (worker.isGone) reach('worker gone for good')
        stopProcess(worker, random() * 40)
      } else if (worker.isUp && worker.stoppedUntil <= now() && random() < rates.workerStopped) {
        reach('worker stopped')
        worker.stoppedUntil = now() + random() * 90
      } else if (random() < rates.connectionLost) {
        reach('connection lost')
        disconnect(worker)
      } else if (worker.connection !== 0 && !worker.isDraining && random() < rates.drains) {
        reach('worker drains')
        worker.isDraining = true
        const { incarnation } = worker
        toCoordinator(worker, () => drain(worker, incarnation))
      }
    }
    if (random() < rates.coordinatorKilled) killCoordinator()
    else if (random() < rates.coordinatorStopped) standStill(random() * 90)
    after(2, misfortune)
  }

  for (const key of keys) {
    after(random() * 60, () => whenAwake(() => ask(key)))
    if (random() < rates.cancels) after(random() * 60, () => whenAwake(() => cancel(key)))
  }
  for (const worker of workers) after(random() * 3, () => startProcess(worker))
  const tick = () => {
    if (now() >= stillUntil) {
      tell({ type: 'tick', isLate: false })
      must(
        [...state.stopping].every((key) => now() < cancelledAt.get(key)! + stopSeconds || now() < stillUntil + stopSeconds),
        'what is cancelled ends soon',
      )
    }
    after(1, tick)
  }
  tick()
  after(0, misfortune)

  const isSettled = () => now() > healSeconds && answers.size === rolloutCount && workers.every(({ jobs }) => jobs.size === 0)
  for (let count = 0; broken === null && now() < limitSeconds && time.step(); count++) if ((count & 255) === 0 && isSettled()) break
  must(
    answeredTurns.every((turn) => turns.has(turn)) && [...answers].every(([key, how]) => how === 'cancelled' || rows.get(key)?.result),
    'what was answered is durable',
  )
  must(answers.size === rolloutCount, 'every rollout is answered')
  must(
    workers.every(({ jobs }) => jobs.size === 0),
    'a worker forgets what is not its own',
  )
  return { broken, states, events }
}
