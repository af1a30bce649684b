import type { AttemptName, ErrorRecord, StopReason } from '@aworld-train/protocol'
import { isSuspect, schedule } from '../scheduler/schedule.ts'
import { createSchedulerState, type SchedulerCommand, type SchedulerEvent } from '../scheduler/scheduler-state.ts'
import { createStore } from './store.test-support.ts'
import type { Job, WorkerMessage, Workers } from './workers.test-support.ts'
import { graceSeconds, leaseSeconds, slots, stopSeconds, type World } from './world.test-support.ts'

/** Writes that the store makes atomically. */
type Commit = 'submission' | 'release' | 'begin' | 'turn' | 'result' | 'superseded attempt'

interface Hello {
  readonly name: string
  readonly connection: number
  readonly incarnation: string
  readonly isDraining: boolean
  readonly holding: readonly AttemptName[]
}

export const idOf = ({ key, attempt }: AttemptName) => `${key}#${attempt}`
const limits = { retries: 2, maxLosses: 3, concurrency: 10 }
const terms = { slots, leaseMs: leaseSeconds * 1000, graceMs: graceSeconds * 1000, stopMs: stopSeconds * 1000 }
const passing: ErrorRecord = { code: 'TOOL_SERVER_DIED', boundary: 'environment', retryable: true, message: 'The server ended.' }
const lost: ErrorRecord = { code: 'WORKER_LOST', boundary: 'environment', retryable: true, message: 'Lost.' }

/** State that is lost with the process of the coordinator. */
const createMemory = () => ({
  state: createSchedulerState(limits),
  urls: new Set<string>(),
  assigned: new Map<string, string>(),
  dealtWith: new Set<string>(),
  submitted: [] as string[],
  /** Deadlines until which a worker need not name an assignment, and attempts that may be given up. */
  named: new Map<string, number>(),
  doubted: new Set<string>(),
  /** Connections on which a worker has greeted, and whose end has not been heard. */
  greeted: new Map<string, number>(),
  /** Starts of workers that take no more attempts. */
  drained: new Set<string>(),
  /** Deadlines by which a worker must be heard, or may lose its attempts. */
  leases: new Map<string, number>(),
  cancelledAt: new Map<string, number>(),
  /** Cancelled rollouts of which nothing runs, and those that are no longer queued on disk. */
  stopped: new Set<string>(),
  released: new Set<string>(),
  /** Rollouts whose last attempt is being recorded, and the function that begins the next attempt after that. */
  superseding: new Map<string, (() => void) | null>(),
  /** Time until which the coordinator stands still. */
  stillUntil: 0,
  lostKeys: new Set<string>(),
  endings: new Map<string, StopReason>(),
})

export type Coordinator = ReturnType<typeof createCoordinator>

/** Scheduler, sessions and store of a process that may be killed at any moment, and the wishes of its clients. */
export function createCoordinator(world: World, workers: () => Workers) {
  const { now, at, after, bug, random, rates, isFaulty, reach, must } = world
  const run = bug?.schedule ?? schedule
  const store = createStore(world)

  // Answers that clients and agents got, and rollouts that clients no longer want.
  const receipts = new Set<string>()
  const answers = new Map<string, 'done' | 'cancelled'>()
  const answeredTurns: string[] = []
  const unwanted = new Set<string>()
  const numbers = new Set<string>()

  let epoch = 0
  let isUp = true
  let memory = createMemory()
  /** The worker that is speaking, and the attempts that it says it holds. */
  let greeting: { readonly name: string; readonly holding: ReadonlySet<string> } | null = null
  let events = 0

  /** Messages that arrive while the coordinator stands still are dealt with when it goes on. */
  function whenAwake(act: () => void): void {
    if (now() < memory.stillUntil) at(memory.stillUntil + 0.001, () => whenAwake(act))
    else act()
  }

  /** Makes an action that does nothing if this process has been killed by then. */
  function unlessKilled(act: () => void): () => void {
    const own = epoch
    return () => own === epoch && act()
  }

  /** A write. A kill may cut it off before it happens or before what follows from it, or it may arrive late from a dead process. */
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
        kill()
        return
      }
      const result = write()
      const follow = unlessKilled(() => then(result))
      after(0.001, () => whenAwake(follow))
    })
  }

  function tell(event: SchedulerEvent): void {
    if (!isUp) return
    events++
    const commands = run(memory.state, event, now() * 1000)
    for (const key of memory.state.doubted) {
      const { attempt, worker } = memory.state.jobs.get(key)!
      const id = idOf({ key, attempt: attempt! })
      if (!memory.doubted.has(id)) requireReason({ key, attempt: attempt!, worker: worker! })
      memory.doubted.add(id)
    }
    for (const command of commands) carryOut(command)
  }

  function requireReason({ key, attempt, worker }: AttemptName & { readonly worker: string }): void {
    const id = idOf({ key, attempt })
    const isGone = now() >= memory.leases.get(worker)! || (greeting?.name === worker && !greeting.holding.has(id))
    must(memory.cancelledAt.has(key) || isGone || now() >= memory.named.get(id)!, 'an attempt is taken from its worker for a reason')
  }

  const answer = (key: string, how: 'done' | 'cancelled') => void (answers.has(key) || answers.set(key, how))
  const send = (name: string, message: WorkerMessage) => workers().send(name, memory.greeted.get(name), message)

  function carryOut(command: SchedulerCommand): void {
    if (command.type === 'dismiss') workers().disconnect(command.worker)
    if (command.type === 'begin') begin(command.key)
    if (command.type === 'drop') stop(command.key)
    if ('attempt' in command) carryOutFor(command)
  }

  function carryOutFor(command: Extract<SchedulerCommand, AttemptName>): void {
    const { type, key, attempt } = command
    const id = idOf(command)
    if (type === 'assign') assign(command.worker, { key, attempt })
    if (type === 'finish') finish({ key, attempt })
    if (type === 'fence') send(command.worker, { type, key, attempt })
    if (type === 'kept') {
      must(store.resultOf(key)?.attempt === attempt || memory.dealtWith.has(id), 'a worker forgets only what is dealt with')
      send(command.worker, { type, key, attempt })
    }
    if (type === 'stop') {
      reach('cancelled while it runs')
      send(command.worker, { type, key, attempt })
    }
    if (type === 'supersede') {
      reach('failed and tried again')
      memory.dealtWith.add(id)
      supersede({ key, attempt })
      if (random() < rates.cancels / 10) after(0.05, () => cancel(key))
    }
    if (type === 'revoke') {
      if (!memory.doubted.has(id)) requireReason(command)
      const isCleared = memory.doubted.has(id) && !memory.cancelledAt.has(key) && memory.state.jobs.get(key)!.lossesAt.length === 0
      reach(command.isLast ? 'given up alone' : isCleared ? 'suspect cleared' : 'attempt lost')
      close(command)
      if (!command.isLast) return
      memory.lostKeys.add(key)
      conclude({ key, attempt }, 'failed', lost)
    }
  }

  /** A client that cancels asks again until there is an answer. */
  function cancel(key: string): void {
    unwanted.add(key)
    if (!isUp) return
    const status = memory.state.jobs.get(key)?.status
    if (!status) stop(key)
    else if (!memory.cancelledAt.has(key)) {
      reach(`cancelled: ${status}`)
      memory.cancelledAt.set(key, now())
      tell({ type: 'cancel', key })
    }
    commit(
      'release',
      () => store.queued.delete(key),
      () => {
        memory.released.add(key)
        if (memory.stopped.has(key)) answer(key, 'cancelled')
      },
    )
  }

  function stop(key: string): void {
    memory.stopped.add(key)
    if (memory.released.has(key)) answer(key, 'cancelled')
  }

  /** Records the attempt, after which the next one begins. */
  function supersede({ key, attempt }: AttemptName): void {
    memory.superseding.set(key, null)
    commit(
      'superseded attempt',
      () => store.isCurrent({ key, attempt }),
      (isKept) => {
        const beginNext = memory.superseding.get(key)
        memory.superseding.delete(key)
        if (isKept) return beginNext?.()
        tell({ type: 'closed', key })
        submit(key)
      },
    )
  }

  function begin(key: string): void {
    const { state, submitted, superseding } = memory
    const taken = [...state.jobs.values()].filter(({ worker, status }) => worker !== null && status !== 'doubted')
    must(taken.length <= limits.concurrency, 'no more run than may')
    if (!submitted.includes(key)) reach('begun again')
    else {
      const waiting = submitted.filter((other) => state.queue.has(other))
      must(
        waiting.every((other) => submitted.indexOf(other) > submitted.indexOf(key)),
        'rollouts begin in their order',
      )
      memory.submitted = submitted.filter((other) => other !== key)
    }
    if (superseding.has(key)) superseding.set(key, () => beginOnDisk(key))
    else beginOnDisk(key)
  }

  function beginOnDisk(key: string): void {
    commit(
      'begin',
      () => store.begin(key),
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
    const { greeted, drained, state, urls, assigned } = memory
    must(greeted.has(name) && !drained.has(state.workers.get(name)!.incarnation), 'only a connected worker that takes work gets some')
    const beside = [...state.workers.get(name)!.jobs].map((other) => state.jobs.get(other)!)
    if (isSuspect(state.jobs.get(key)!)) reach('suspect runs alone')
    must(beside.length === 1 || !beside.some((job) => job.status === 'running' && isSuspect(job)), 'a suspect has its worker for itself')
    memory.named.set(idOf({ key, attempt }), now() + leaseSeconds)
    urls.add(idOf({ key, attempt }))
    assigned.set(key, `${name} ${attempt}`)
    send(name, { type: 'assign', key, attempt })
  }

  const close = (name: AttemptName) => void (bug?.world === 'URLs stay open' || memory.urls.delete(idOf(name)))

  function conclude(name: AttemptName, stopReason: StopReason, error: ErrorRecord | undefined): void {
    const act = unlessKilled(() => tell({ ...name, type: 'ended', stopReason, error }))
    after(0.01 + random(), () => whenAwake(act))
    memory.endings.set(idOf(name), stopReason)
  }

  function finish(name: AttemptName): void {
    const { key, attempt } = name
    const stopReason = memory.endings.get(idOf(name))!
    close(name)
    if (stopReason === 'cancelled') {
      memory.dealtWith.add(idOf(name))
      stop(key)
      tell({ type: 'closed', key })
      return
    }
    const zero = bug?.world === 'a lost worker scores 0' && memory.lostKeys.has(key)
    const reward = stopReason === 'completed' ? 1 : zero ? 0 : null
    must(!memory.lostKeys.has(key) || reward === null, 'a lost worker is no reward')
    commit(
      'result',
      () => store.keepResult(key, { attempt, stopReason, reward }),
      (isKept) => {
        if (isKept) answer(key, 'done')
        else memory.dealtWith.add(idOf(name))
        tell({ type: 'closed', key })
        if (!isKept) submit(key)
      },
    )
  }

  /** Kills the coordinator, which starts again within six seconds. */
  function kill(): void {
    if (!isUp) return
    reach('coordinator killed')
    epoch++
    isUp = false
    memory = createMemory()
    workers().disconnectAll()
    after(1 + random() * 5, () => {
      isUp = true
      must(
        [...receipts].every((key) => store.queued.has(key) || store.resultOf(key) || unwanted.has(key)),
        'what was answered is durable',
      )
      if (bug?.world !== 'queue is forgotten') for (const key of store.queued) if (!store.resultOf(key)) submit(key)
    })
  }

  function accept(key: string): void {
    submit(key)
    commit(
      'submission',
      () => store.queued.add(key),
      () => receipts.add(key),
    )
    if (bug?.world === '202 before commit') receipts.add(key)
  }

  function submit(key: string): void {
    if (!isUp || memory.state.jobs.has(key) || answers.has(key)) return
    memory.submitted.push(key)
    tell({ type: 'submit', key })
  }

  /** A worker, or its launcher, reports that the worker holds nothing any more. */
  function tellOfNothing(type: 'leave' | 'exit', name: string): void {
    memory.greeted.delete(name)
    greeting = { name, holding: new Set() }
    tell({ type, worker: name })
    greeting = null
  }

  return {
    isUp: () => isUp,
    isAwake: () => now() >= memory.stillUntil,
    whenAwake,
    unlessKilled,
    kill,
    cancel,
    answers,

    /** A client asks for its rollout. It submits until that is accepted, and cancels until that is answered. */
    ask(key: string) {
      if (store.resultOf(key)) answer(key, 'done')
      else if (unwanted.has(key)) cancel(key)
      else if (!receipts.has(key)) accept(key)
    },

    hello({ name, connection, incarnation, isDraining, holding }: Hello) {
      const { greeted, state, assigned, drained, leases } = memory
      greeted.set(name, connection)
      const isBeginning = [...(state.workers.get(name)?.jobs ?? [])].some((key) => state.jobs.get(key)?.status === 'beginning')
      if (isBeginning) reach('hello while a rollout begins')
      const goesOn = holding.some(({ key, attempt }) => state.jobs.get(key)?.attempt === attempt && state.jobs.get(key)?.worker === name)
      if (goesOn) reach('reconnect keeps an attempt')
      if (holding.some(({ key }) => !state.jobs.has(key) || !assigned.has(key))) reach('holds what nobody assigned')
      const before = state.workers.get(name)
      if (
        before?.incarnation === incarnation &&
        before.jobs.size > holding.length + [...before.jobs].filter((key) => state.jobs.get(key)!.status !== 'running').length
      )
        reach('assignment lost with its connection')
      if (before && before.incarnation !== incarnation && before.jobs.size > 0) reach('another start of a worker with work')
      if (isDraining) drained.add(incarnation)
      for (const each of holding) memory.named.set(idOf(each), now() + leaseSeconds)
      greeting = { name, holding: new Set(holding.map(idOf)) }
      tell({ ...terms, type: 'hello', worker: name, incarnation, isDraining, holding })
      greeting = null
      leases.set(name, now() + leaseSeconds)
    },

    disconnected(name: string, connection: number) {
      const { greeted, leases } = memory
      if (greeted.get(name) !== connection) return
      greeted.delete(name)
      leases.set(name, Math.min(leases.get(name)!, now() + graceSeconds))
      tell({ type: 'disconnect', worker: name })
    },

    beat(name: string, holding: readonly AttemptName[]) {
      if (memory.state.workers.has(name)) memory.leases.set(name, now() + leaseSeconds)
      for (const each of holding) memory.named.set(idOf(each), now() + leaseSeconds)
      tell({ type: 'beat', worker: name, holding })
    },

    drain(name: string, incarnation: string) {
      memory.drained.add(incarnation)
      tell({ type: 'drain', worker: name })
    },

    left: (name: string) => tellOfNothing('leave', name),

    exited(name: string) {
      if (memory.state.workers.get(name)?.jobs.size) reach('exit of a worker with work')
      tellOfNothing('exit', name)
    },

    result(name: string, job: Job) {
      const { key, attempt } = job
      const { state, assigned } = memory
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
    },

    callModel({ key, attempt }: AttemptName) {
      whenAwake(() => {
        const id = idOf({ key, attempt })
        if (!isUp || !memory.urls.has(id)) {
          reach('call to a closed URL')
          return
        }
        const current = memory.state.jobs.get(key)
        must(
          current?.attempt === attempt && (current.status === 'running' || current.status === 'doubted'),
          'an attempt that is over has no URLs',
        )
        const turn = `${id} ${events} ${now()}`
        commit(
          'turn',
          () => store.keepTurn({ key, attempt }, turn),
          (isKept) => isKept && answeredTurns.push(turn),
        )
        if (bug?.world === 'answer before commit') answeredTurns.push(turn)
      })
    },

    /** Stands still. Afterwards it sees that its clock is late before it reads the messages of that time. */
    standStill(seconds: number) {
      if (!isUp || now() < memory.stillUntil) return
      reach('coordinator stands still')
      memory.stillUntil = now() + seconds
      const goOn = unlessKilled(() => {
        for (const ends of [memory.leases, memory.named])
          for (const [name, end] of ends) ends.set(name, Math.max(end, now() + graceSeconds))
        tell({ type: 'tick', isLate: true })
      })
      after(seconds, goOn)
    },

    tick() {
      const { state, cancelledAt, stillUntil } = memory
      if (now() < stillUntil) return
      tell({ type: 'tick', isLate: false })
      must(
        [...state.stopping].every((key) => now() < cancelledAt.get(key)! + stopSeconds || now() < stillUntil + stopSeconds),
        'what is cancelled ends soon',
      )
    },

    /** Whether every answer was about what is on disk. */
    answeredTruly: () =>
      answeredTurns.every((turn) => store.turns.has(turn)) &&
      [...answers].every(([key, how]) => how === 'cancelled' || store.resultOf(key)),
  }
}
