import type { AttemptName, StopReason } from '@aworld-train/protocol'
import { type Coordinator, idOf } from './coordinator.test-support.ts'
import { leaseSeconds, slots, type World } from './world.test-support.ts'

/** An attempt that a worker holds until it is told to forget it. */
export interface Job extends AttemptName {
  turnsLeft: number
  stopReason: StopReason | null
  isCancelled: boolean
}

/** A process that runs agents, and its connection. */
interface Worker {
  readonly name: string
  isUp: boolean
  isGone: boolean
  isDraining: boolean
  /** Counts starts of the process. */
  start: number
  /** Identifies this start of the process; it changes when the process gives up its attempts. */
  incarnation: string
  /** Number of the connection; 0 for none. */
  connection: number
  stoppedUntil: number
  heardAt: number
  /** Times when the last message of the connection arrives, in either direction. */
  arrival: { up: number; down: number }
  jobs: Map<string, Job>
}

/** A message from the coordinator to a worker. */
export interface WorkerMessage extends AttemptName {
  readonly type: 'assign' | 'fence' | 'kept' | 'stop'
}

export type Workers = ReturnType<typeof createWorkers>

/** The processes that run agents, and their connections. */
export function createWorkers(count: number, world: World, coordinator: () => Coordinator) {
  const { now, at, after, random, rates, isFaulty, latency, reach, must } = world
  const workers: Worker[] = Array.from({ length: count }, (_, index) => ({
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

  /** Messages of a connection arrive in order, unless it ends first. */
  function send(name: string, connection: number | undefined, message: WorkerMessage): void {
    const worker = workerOf(name)
    if (worker.connection === 0 || worker.connection !== connection) return
    worker.arrival.down = Math.max(worker.arrival.down, now() + random() * latency())
    const arrive = () => {
      if (worker.connection !== connection || !worker.isUp) return
      if (worker.stoppedUntil > now()) at(worker.stoppedUntil, arrive)
      else take(worker, message)
    }
    at(worker.arrival.down, arrive)
  }

  function take(worker: Worker, { type, key, attempt }: WorkerMessage): void {
    const id = idOf({ key, attempt })
    if (type === 'assign') run(worker, { key, attempt })
    else if (type === 'stop') worker.jobs.has(id) && Object.assign(worker.jobs.get(id)!, { isCancelled: true })
    else worker.jobs.delete(id)
  }

  function run(worker: Worker, name: AttemptName): void {
    const running = [...worker.jobs.values()].filter((other) => other.stopReason === null)
    must(running.length < slots, 'a worker has no more than its slots')
    must(!worker.jobs.has(idOf(name)), 'an attempt is assigned once')
    const job = { ...name, turnsLeft: 1 + Math.floor(random() * 5), stopReason: null, isCancelled: false }
    worker.jobs.set(idOf(job), job)
    takeTurn(worker, job)
  }

  function tell(worker: Worker, arrive: () => void): void {
    const { connection } = worker
    if (connection === 0) return
    worker.arrival.up = Math.max(worker.arrival.up, now() + random() * latency())
    at(worker.arrival.up, () => {
      coordinator().whenAwake(() => worker.connection === connection && coordinator().isUp() && arrive())
    })
  }

  const holding = ({ jobs }: Worker): AttemptName[] => Array.from(jobs.values(), ({ key, attempt }) => ({ key, attempt }))

  function connect(worker: Worker): void {
    if (!worker.isUp || worker.connection !== 0) return
    if (!coordinator().isUp() || worker.stoppedUntil > now()) {
      after(1 + random(), () => connect(worker))
      return
    }
    worker.connection = ++connections
    worker.arrival = { up: now(), down: now() }
    const { name, connection, incarnation, isDraining } = worker
    const hello = { name, connection, incarnation, isDraining, holding: holding(worker) }
    tell(worker, () => {
      worker.heardAt = now()
      coordinator().hello(hello)
    })
  }

  /** Ends a connection. The coordinator hears of it, except when it is half-open. */
  function disconnect(worker: Worker): void {
    const { name, connection } = worker
    if (connection === 0) return
    worker.connection = 0
    const hear = coordinator().unlessKilled(() => coordinator().disconnected(name, connection))
    const isHalfOpen = isFaulty() && random() < 0.3
    if (isHalfOpen) reach('half-open connection')
    else after(random() * 2, () => coordinator().whenAwake(hear))
    after(0.1 + random() * (isFaulty() ? 60 * random() : 1), () => connect(worker))
  }

  /** A worker's actions by the clock. */
  function live(worker: Worker, start: number): void {
    if (worker.start !== start || !worker.isUp) return
    if (worker.stoppedUntil <= now()) {
      const has = holding(worker)
      if (worker.connection !== 0 && now() - worker.heardAt > leaseSeconds) disconnect(worker)
      if (worker.connection !== 0)
        tell(worker, () => {
          worker.heardAt = now()
          coordinator().beat(worker.name, has)
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

  function leave(worker: Worker): void {
    reach('worker left')
    tell(worker, () => {
      worker.connection = 0
      coordinator().left(worker.name)
    })
    const { start } = worker
    after(12, () => worker.start === start && stopProcess(worker, 5 + random() * 30))
  }

  function stopProcess(worker: Worker, restartSeconds: number): void {
    worker.isUp = false
    worker.start++
    worker.jobs = new Map()
    disconnect(worker)
    if (rates.launches) {
      // The launcher reports this before it starts the worker again.
      const hear = coordinator().unlessKilled(() => coordinator().exited(worker.name))
      after(random() * Math.min(1, restartSeconds), () => coordinator().whenAwake(hear))
    }
    if (!worker.isGone) after(restartSeconds, () => startProcess(worker))
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
      // A model call goes to its URL and not through the worker's connection.
      after(random() * latency(), () => coordinator().callModel(job))
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
  const sendResult = (worker: Worker, job: Job) => tell(worker, () => coordinator().result(worker.name, job))

  return {
    send,
    disconnect: (name: string) => disconnect(workerOf(name)),
    disconnectAll: () => workers.forEach(disconnect),
    /** Starts each worker within three seconds. */
    start() {
      for (const worker of workers) after(random() * 3, () => startProcess(worker))
    },
    /** Draws the mishaps of each worker. */
    suffer() {
      if (random() < rates.allKilled) {
        reach('all workers killed')
        for (const worker of workers) if (worker.isUp) stopProcess(worker, random() * 10)
      }
      for (const worker of workers) {
        if (worker.isUp && random() < rates.workerKilled) {
          reach('worker killed')
          worker.isGone = random() < 0.1 && workers.filter(({ isGone }) => !isGone).length > 2
          if (worker.isGone) reach('worker gone for good')
          stopProcess(worker, random() * 40)
        } else if (worker.isUp && worker.stoppedUntil <= now() && random() < rates.workerStopped) {
          reach('worker stopped')
          worker.stoppedUntil = now() + random() * 90
        } else if (worker.jobs.size > 0 && random() < rates.forgets) {
          reach('worker forgets what it has')
          worker.jobs.clear()
        } else if (random() < rates.connectionLost) {
          reach('connection lost')
          disconnect(worker)
        } else if (worker.connection !== 0 && !worker.isDraining && random() < rates.drains) {
          reach('worker drains')
          worker.isDraining = true
          const { name, incarnation } = worker
          tell(worker, () => coordinator().drain(name, incarnation))
        }
      }
    },
    haveNothing: () => workers.every(({ jobs }) => jobs.size === 0),
  }
}
