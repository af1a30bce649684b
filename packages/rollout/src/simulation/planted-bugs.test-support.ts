import type { PolicySession } from '@aworld-train/core'
import { type Schedule, schedule } from '../scheduler/schedule.ts'
import type { SchedulerEvent, SchedulerState } from '../scheduler/scheduler-state.ts'
import type { SimulatedStore } from './store.test-support.ts'

/** Invariants that hold at every moment, and some that hold eventually once nothing fails any more. */
export type Invariant =
  | 'a rollout has one result, of its current attempt'
  | 'an attempt has a number of its own'
  | 'turns are those of the current attempt'
  | 'what was answered is durable'
  | 'a worker forgets only what is dealt with'
  | 'an attempt is ended by the worker that has it'
  | 'an attempt that is over has no URLs'
  | 'only a connected worker that takes work gets some'
  | 'a worker has no more than its slots'
  | 'no more run than may'
  | 'an attempt is assigned once'
  | 'an attempt is taken from its worker for a reason'
  | 'a suspect has its worker for itself'
  | 'what is cancelled ends soon'
  | 'rollouts begin in their order'
  | 'a lost worker is no reward'
  | 'no rollout is given up'
  | 'a worker goes on'
  | 'every rollout is answered'
  | 'a worker forgets what is not its own'

const jobsOf = (state: SchedulerState, worker: string) =>
  [...(state.workers.get(worker)?.jobs ?? [])].map((key) => state.jobs.get(key)!).filter(({ attempt }) => attempt !== null)

/** Each is one fault of the scheduler, planted from outside. */
const schedulerBugs = {
  'any result is taken': (state, event, now) => {
    const job = event.type === 'result' ? state.jobs.get(event.key) : undefined
    const taken = job?.status === 'running' ? { ...event, worker: job.worker!, attempt: job.attempt! } : event
    return schedule(state, taken as SchedulerEvent, now)
  },
  'kept before it is': (state, event, now) =>
    schedule(state, event, now).flatMap((command) => {
      const worker = command.type === 'finish' ? state.jobs.get(command.key)!.worker : null
      return command.type === 'finish' && worker !== null ? [command, { ...command, type: 'kept', worker }] : [command]
    }),
  'what a lost worker had is forgotten': (state, event, now) => {
    if (event.type === 'tick') for (const { deadline, jobs } of state.workers.values()) if (deadline <= now) jobs.clear()
    return schedule(state, event, now)
  },
  'a worker has everything that it was assigned': (state, event, now) =>
    schedule(
      state,
      event.type === 'hello' || event.type === 'beat'
        ? { ...event, holding: [...event.holding, ...jobsOf(state, event.worker).map(({ key, attempt }) => ({ key, attempt: attempt! }))] }
        : event,
      now,
    ),
  'what a worker has from before is not fenced': (state, event, now) =>
    schedule(state, event, now).filter(({ type }) => type !== 'fence' || !['hello', 'beat', 'result'].includes(event.type)),
  'leases never end': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, leaseMs: Number.POSITIVE_INFINITY } : event, now),
  'lost connections are not seen': (state, event, now) => (event.type === 'disconnect' ? [] : schedule(state, event, now)),
  'losses are not counted': (state, event, now) => {
    for (const job of state.jobs.values()) Object.assign(job, { deaths: 0, deathsAt: [], lossesAt: [] })
    return schedule(state, event, now)
  },
  'a suspect has no worker for itself': (state, event, now) => {
    for (const job of state.jobs.values()) job.isAlone = false
    return schedule(state, event, now)
  },
  'what a worker forgot is waited for': (state, event, now) => {
    if (event.type === 'beat') for (const job of jobsOf(state, event.worker)) job.namedUntil = Number.POSITIVE_INFINITY
    return schedule(state, event, now)
  },
  'the last is first': (state, event, now) => {
    const [first, ...rest] = event.type === 'closed' ? [...state.queue].reverse() : []
    if (first !== undefined && rest.length > 0) {
      state.queue.clear()
      for (const key of [first, ...rest.reverse()]) state.queue.add(key)
    }
    return schedule(state, event, now)
  },
  'slots are not counted': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, slots: event.slots + 2 } : event, now),
  'concurrency is not counted': (state, event, now) =>
    schedule({ ...state, limits: { ...state.limits, concurrency: Number.POSITIVE_INFINITY } }, event, now),
  'what a worker has is assigned again when it comes again': (state, event, now) => {
    const commands = schedule(state, event, now)
    if (event.type !== 'hello') return commands
    const worker = event.worker
    const running = jobsOf(state, worker).filter(({ status }) => status === 'running')
    return [...commands, ...running.map(({ key, attempt }) => ({ type: 'assign', worker, key, attempt: attempt! }) as const)]
  },
  'starts of a worker are not told apart': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, incarnation: 'one' } : event, now),
  'a lost connection has no grace': (state, event, now) => schedule(state, event.type === 'hello' ? { ...event, graceMs: 0 } : event, now),
  'leases end while the coordinator stands still': (state, event, now) =>
    schedule(state, event.type === 'tick' ? { ...event, isLate: false } : event, now),
  'a worker that drains gets work': (state, event, now) => (event.type === 'drain' ? [] : schedule(state, event, now)),
  'a worker that comes again drains no more': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, isDraining: false } : event, now),
  'an exit is no loss': (state, event, now) => schedule(state, event.type === 'exit' ? { ...event, type: 'leave' } : event, now),
  'a cancel waits for its worker': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, stopMs: Number.POSITIVE_INFINITY } : event, now),
} satisfies Record<string, Schedule>

/** Each is one fault of a store. */
const storeBugs = {
  'same attempt again': (store) => ({ ...store, begin: async (...begun) => ({ ...(await store.begin(...begun)), attempt: 0 }) }),
  'turns of any attempt': (store) => ({
    ...store,
    appendTurn: (key, _, agent, turn) => store.appendTurn(key, store.rollout(key)!.attempt, agent, turn),
  }),
  'answer before commit': (store) => ({ ...store, appendTurn: async (...turn) => void store.appendTurn(...turn).catch(() => {}) }),
  '202 before commit': (store) => ({ ...store, keepSubmission: async (request) => void store.keepSubmission(request).catch(() => {}) }),
  'a lost worker scores 0': (store) => ({
    ...store,
    finish: (episode, worker) => store.finish(episode.error?.code === 'WORKER_LOST' ? { ...episode, reward: 0 } : episode, worker),
  }),
  'queue is forgotten': (store) => ({ ...store, submissions: () => [] }),
} satisfies Record<string, (store: SimulatedStore) => SimulatedStore>

/** Where a bug is planted: around a part of the real coordinator. */
interface Planted {
  readonly decide?: Schedule
  readonly store?: (store: SimulatedStore) => SimulatedStore
  readonly session?: (session: PolicySession) => PolicySession
  /** Begins to alter what connections carry in one life. */
  readonly frames?: () => (frame: string) => string
}

/** Reads every result as one of the attempt that was assigned last. */
function resultsOfAnyAttempt(): (frame: string) => string {
  const latest = new Map<string, number>()
  return (frame) => {
    const message = JSON.parse(frame) as { readonly type: string; readonly key: string; readonly attempt: number }
    if (message.type === 'assign') latest.set(message.key, message.attempt)
    return message.type === 'result' && latest.has(message.key) ? JSON.stringify({ ...message, attempt: latest.get(message.key) }) : frame
  }
}

export interface PlantedBug extends Planted {
  readonly name: string
  /** The invariant that it breaks. */
  readonly breaks: Invariant
}

const inScheduler = (name: keyof typeof schedulerBugs, breaks: Invariant): PlantedBug => ({ name, breaks, decide: schedulerBugs[name] })
const inStore = (name: keyof typeof storeBugs, breaks: Invariant): PlantedBug => ({ name, breaks, store: storeBugs[name] })

export const plantedBugs: readonly PlantedBug[] = [
  inScheduler('any result is taken', 'an attempt is ended by the worker that has it'),
  inScheduler('kept before it is', 'a worker forgets only what is dealt with'),
  inScheduler('what a lost worker had is forgotten', 'every rollout is answered'),
  inScheduler('a worker has everything that it was assigned', 'every rollout is answered'),
  inScheduler('what a worker has from before is not fenced', 'a worker forgets what is not its own'),
  inScheduler('leases never end', 'every rollout is answered'),
  inScheduler('lost connections are not seen', 'only a connected worker that takes work gets some'),
  inScheduler('losses are not counted', 'every rollout is answered'),
  inScheduler('a suspect has no worker for itself', 'a suspect has its worker for itself'),
  inScheduler('what a worker forgot is waited for', 'every rollout is answered'),
  inScheduler('the last is first', 'rollouts begin in their order'),
  inScheduler('slots are not counted', 'a worker has no more than its slots'),
  inScheduler('concurrency is not counted', 'no more run than may'),
  inScheduler('what a worker has is assigned again when it comes again', 'an attempt is assigned once'),
  inScheduler('starts of a worker are not told apart', 'every rollout is answered'),
  inScheduler('a lost connection has no grace', 'an attempt is taken from its worker for a reason'),
  inScheduler('leases end while the coordinator stands still', 'an attempt is taken from its worker for a reason'),
  inScheduler('a worker that drains gets work', 'only a connected worker that takes work gets some'),
  inScheduler('a worker that comes again drains no more', 'only a connected worker that takes work gets some'),
  inScheduler('an exit is no loss', 'every rollout is answered'),
  inScheduler('a cancel waits for its worker', 'what is cancelled ends soon'),
  inStore('same attempt again', 'an attempt has a number of its own'),
  inStore('turns of any attempt', 'turns are those of the current attempt'),
  { name: 'results of any attempt', breaks: 'a rollout has one result, of its current attempt', frames: resultsOfAnyAttempt },
  inStore('answer before commit', 'what was answered is durable'),
  inStore('202 before commit', 'what was answered is durable'),
  {
    name: 'URLs stay open',
    breaks: 'an attempt that is over has no URLs',
    session: (session) => ({ ...session, close: async () => session.trajectories() }),
  },
  inStore('a lost worker scores 0', 'a lost worker is no reward'),
  inStore('queue is forgotten', 'every rollout is answered'),
]
