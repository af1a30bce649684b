import type { AttemptName } from '@aworld-train/core'
import { isSuspect, type Schedule, schedule } from '../scheduler/schedule.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState } from '../scheduler/scheduler-state.ts'
import type { SimulatedProcess } from './process.test-support.ts'
import type { SimulatedStore } from './store.test-support.ts'
import { graceSeconds, leaseSeconds, stopSeconds, type World } from './world.test-support.ts'

export const idOf = ({ key, attempt }: AttemptName) => `${key}#${attempt}`

/** Attempts that stores have begun since the world began. */
const begunOf = new WeakMap<World, Set<string>>()

/** Checks what one coordinator does: the commands of its scheduler and the writes of its store. */
export class Watch {
  readonly #world: World
  readonly #process: SimulatedProcess
  readonly #decide: Schedule
  /** Called when a rollout is in a state that does not last, in which its client may cancel it. */
  readonly #onMoment: (key: string) => void
  #state: SchedulerState | null = null
  readonly #assigned = new Map<string, string>()
  readonly #everAssigned = new Set<string>()
  readonly #dealtWith = new Set<string>()
  readonly #submitted: string[] = []
  /** Deadlines until which a worker need not name an assignment, and attempts that may be given up. */
  readonly #named = new Map<string, number>()
  readonly #doubted = new Set<string>()
  /** Workers that have greeted, and the end of whose connection has not been heard. */
  readonly #greeted = new Set<string>()
  /** Starts of workers that take no more attempts. */
  readonly #drained = new Set<string>()
  /** Deadlines by which a worker must be heard, or may lose its attempts. */
  readonly #leases = new Map<string, number>()
  readonly #cancelledAt = new Map<string, number>()
  /** The attempts that the worker which is speaking says it holds. */
  #speaking: { readonly worker: string; readonly holding: ReadonlySet<string> } | null = null

  constructor(world: World, process: SimulatedProcess, onMoment: (key: string) => void) {
    this.#world = world
    this.#onMoment = onMoment
    this.#process = process
    this.#decide = world.bug?.decide ?? schedule
    if (!begunOf.has(world)) begunOf.set(world, new Set())
  }

  /** The rule of the coordinator's scheduler. */
  readonly decide: Schedule = (state, event, now) => {
    this.#state = state
    this.#hear(state, event)
    const wasRunning = 'key' in event && state.jobs.get(event.key)?.status === 'running'
    const commands = this.#decide(state, event, now)
    if (event.type === 'result' && wasRunning && state.jobs.get(event.key)?.status === 'ending') this.#ended(event)
    for (const key of state.doubted) {
      const { attempt, worker } = state.jobs.get(key)!
      const name = { key, attempt: attempt! }
      if (this.#doubted.has(idOf(name))) continue
      this.#requireReason({ ...name, worker: worker! })
      this.#doubted.add(idOf(name))
      this.#onMoment(key)
    }
    for (const command of commands) this.#check(state, command)
    this.#speaking = null
    const { now: seconds, must } = this.#world
    const since = Math.max(0, this.#process.stillUntil())
    const isLate = (at: number) => seconds() > Math.max(at, since) + stopSeconds + 1
    must(
      [...state.stopping].every((key) => !isLate(this.#cancelledAt.get(key)!)),
      'what is cancelled ends soon',
    )
    return commands
  }

  #hear(state: SchedulerState, event: SchedulerEvent): void {
    const { now, reach } = this.#world
    const hold = (holding: readonly AttemptName[]) => {
      for (const each of holding) this.#named.set(idOf(each), now() + leaseSeconds)
    }
    switch (event.type) {
      case 'submit':
        this.#submitted.push(event.key)
        break
      case 'cancel':
        this.#cancelledAt.set(event.key, now())
        reach(`cancelled: ${state.jobs.get(event.key)?.status ?? 'ended'}`)
        break
      case 'hello': {
        const { worker, incarnation, isDraining, holding } = event
        this.#reachAtHello(state, event)
        this.#greeted.add(worker)
        if (isDraining) this.#drained.add(incarnation)
        hold(holding)
        this.#leases.set(worker, now() + leaseSeconds)
        this.#speaking = { worker, holding: new Set(holding.map(idOf)) }
        break
      }
      case 'beat':
        if (state.workers.has(event.worker)) this.#leases.set(event.worker, now() + leaseSeconds)
        hold(event.holding)
        break
      case 'disconnect':
        this.#greeted.delete(event.worker)
        this.#leases.set(event.worker, Math.min(this.#leases.get(event.worker)!, now() + graceSeconds))
        break
      case 'drain':
        this.#drained.add(state.workers.get(event.worker)?.incarnation ?? '')
        break
      case 'exit':
        if (state.workers.get(event.worker)?.jobs.size) reach('exit of a worker with work')
        this.#speaking = { worker: event.worker, holding: new Set() }
        break
      case 'leave':
        this.#greeted.delete(event.worker)
        reach('worker left')
        this.#speaking = { worker: event.worker, holding: new Set() }
        break
      case 'result': {
        const job = state.jobs.get(event.key)
        if (job?.status === 'ending' && job.attempt === event.attempt) reach('result while it is dealt with')
        if (!job) reach('late duplicate')
        if (job && job.attempt !== event.attempt) reach('result after fence')
        break
      }
      case 'tick':
        if (!event.isLate) break
        reach('coordinator sees that it stood still')
        for (const ends of [this.#leases, this.#named]) for (const [name, end] of ends) ends.set(name, Math.max(end, now() + graceSeconds))
    }
  }

  #reachAtHello(state: SchedulerState, { worker, incarnation, holding }: Extract<SchedulerEvent, { type: 'hello' }>): void {
    const { reach } = this.#world
    const before = state.workers.get(worker)
    const jobs = [...(before?.jobs ?? [])].map((key) => state.jobs.get(key)!)
    const isRunning = ({ key, attempt }: AttemptName) => state.jobs.get(key)?.attempt === attempt && state.jobs.get(key)?.worker === worker
    if (jobs.some(({ status }) => status === 'beginning')) reach('hello while a rollout begins')
    if (holding.some(isRunning)) reach('reconnect keeps an attempt')
    if (holding.some(({ key }) => !this.#assigned.has(key))) reach('holds what nobody assigned')
    if (before?.incarnation === incarnation && jobs.filter(({ status }) => status === 'running').length > holding.length)
      reach('assignment lost with its connection')
    if (before && before.incarnation !== incarnation && jobs.length > 0) reach('another start of a worker with work')
  }

  #ended(name: AttemptName & { readonly worker: string }): void {
    const { must } = this.#world
    must(this.#assigned.get(name.key) === `${name.worker} ${name.attempt}`, 'an attempt is ended by the worker that has it')
    this.#onMoment(name.key)
  }

  #requireReason(name: AttemptName & { readonly worker: string }): void {
    const { now, must } = this.#world
    const id = idOf(name)
    const isGone = now() >= this.#leases.get(name.worker)! || (this.#speaking?.worker === name.worker && !this.#speaking.holding.has(id))
    must(this.#cancelledAt.has(name.key) || isGone || now() >= this.#named.get(id)!, 'an attempt is taken from its worker for a reason')
  }

  #check(state: SchedulerState, command: SchedulerCommand): void {
    const { must, reach } = this.#world
    if (command.type === 'begin') this.#checkBegin(state, command.key)
    if (command.type === 'dismiss') this.#greeted.delete(command.worker)
    if (!('attempt' in command)) return
    const { key } = command
    const id = idOf(command)
    const job = state.jobs.get(key)
    if (command.type === 'assign') this.#checkAssign(state, command)
    if (command.type === 'stop') reach('cancelled while it runs')
    if (command.type === 'supersede') {
      reach('failed and tried again')
      this.#dealtWith.add(id)
      this.#onMoment(key)
    }
    if (command.type === 'kept') must(this.#dealtWith.has(id) || this.#cancelledAt.has(key), 'a worker forgets only what is dealt with')
    if (command.type === 'revoke') {
      if (!this.#doubted.has(id)) this.#requireReason(command)
      const isCleared = this.#doubted.has(id) && !this.#cancelledAt.has(key) && job?.lossesAt.length === 0
      reach(command.isLast ? 'given up alone' : isCleared ? 'suspect cleared' : 'attempt lost')
    }
  }

  #checkBegin(state: SchedulerState, key: string): void {
    const { must, reach } = this.#world
    const taken = [...state.jobs.values()].filter(({ worker, status }) => worker !== null && status !== 'doubted')
    must(taken.length <= concurrency, 'no more run than may')
    const place = this.#submitted.indexOf(key)
    this.#onMoment(key)
    if (place < 0) reach('begun again')
    else {
      must(!this.#submitted.slice(0, place).some((other) => state.queue.has(other)), 'rollouts begin in their order')
      this.#submitted.splice(place, 1)
    }
  }

  #checkAssign(state: SchedulerState, { worker, key, attempt }: AttemptName & { readonly worker: string }): void {
    const { now, must, reach } = this.#world
    const id = idOf({ key, attempt })
    const { incarnation, jobs } = state.workers.get(worker)!
    must(this.#greeted.has(worker) && !this.#drained.has(incarnation), 'only a connected worker that takes work gets some')
    must(!this.#everAssigned.has(id), 'an attempt is assigned once')
    const beside = [...jobs].map((other) => state.jobs.get(other)!)
    if (isSuspect(state.jobs.get(key)!)) reach('suspect runs alone')
    must(beside.length === 1 || !beside.some((job) => job.status === 'running' && isSuspect(job)), 'a suspect has its worker for itself')
    this.#named.set(id, now() + leaseSeconds)
    this.#assigned.set(key, `${worker} ${attempt}`)
    this.#everAssigned.add(id)
  }

  /** A model call has got through to the URL of an attempt. */
  called({ key, attempt }: AttemptName): void {
    const job = this.#state?.jobs.get(key)
    const isOpen = job?.attempt === attempt && (job.status === 'running' || job.status === 'doubted')
    this.#world.must(isOpen, 'an attempt that is over has no URLs')
  }

  store(store: SimulatedStore): SimulatedStore {
    const { must, reach } = this.#world
    const begun = begunOf.get(this.#world)!
    const latest = new Map<string, number>()
    return {
      ...store,
      begin: async (request, before) => {
        const result = await store.begin(request, before)
        const { key } = request
        const id = idOf({ key, attempt: result.attempt })
        must(result.episode !== null || !begun.has(id), 'an attempt has a number of its own')
        begun.add(id)
        latest.set(key, result.attempt)
        return result
      },
      appendTurn: async (key, attempt, agent, turn) => {
        try {
          await store.appendTurn(key, attempt, agent, turn)
        } catch (error) {
          reach('store refused a turn')
          throw error
        }
      },
      finish: async (episode, worker) => {
        const { rollout: key, attempt, answer, error } = episode
        await store.finish(episode, worker)
        const isIts = answer === null || answer === idOf({ key, attempt })
        must(latest.get(key) === attempt && isIts, 'a rollout has one result, of its current attempt')
        must(error?.code !== 'WORKER_LOST' || store.episode(key)?.reward === null, 'a lost worker is no reward')
        this.#dealtWith.add(idOf({ key, attempt }))
      },
    }
  }
}

/** Rollouts that run at once. */
export const concurrency = 10
