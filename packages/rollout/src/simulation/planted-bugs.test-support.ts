import { schedule } from '../scheduler/schedule.ts'
import type { SchedulerCommand, SchedulerEvent, SchedulerState } from '../scheduler/scheduler-state.ts'

/** What must hold at every moment, and, once nothing fails any more, after a while. */
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
  | 'rollouts begin in their order'
  | 'a lost worker is no reward'
  | 'every rollout is answered'
  | 'a worker forgets what is not its own'

/** Faults of the parts around the scheduler, that the world is told to have. */
export type WorldBug =
  | 'same attempt again'
  | 'turns of any attempt'
  | 'results of any attempt'
  | 'answer before commit'
  | 'URLs stay open'
  | 'a lost worker scores 0'
  | 'queue is forgotten'

export type Schedule = (state: SchedulerState, event: SchedulerEvent, now: number) => SchedulerCommand[]

const jobsOf = (state: SchedulerState, worker: string) =>
  [...(state.workers.get(worker)?.jobs ?? [])].map((key) => state.jobs.get(key)!).filter(({ attempt }) => attempt !== null)

/** Each is one fault of the scheduler, made from outside of it. */
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
  'a greeting worker has everything': (state, event, now) =>
    schedule(
      state,
      event.type === 'hello'
        ? { ...event, holding: [...event.holding, ...jobsOf(state, event.worker).map(({ key, attempt }) => ({ key, attempt: attempt! }))] }
        : event,
      now,
    ),
  'nobody is fenced': (state, event, now) => schedule(state, event, now).filter(({ type }) => type !== 'fence'),
  'leases never end': (state, event, now) =>
    schedule(state, event.type === 'hello' ? { ...event, leaseMs: Number.POSITIVE_INFINITY } : event, now),
  'lost connections are not seen': (state, event, now) => (event.type === 'disconnect' ? [] : schedule(state, event, now)),
  'losses are not counted': (state, event, now) => {
    for (const job of state.jobs.values()) job.losses = 0
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
} satisfies Record<string, Schedule>

export interface PlantedBug {
  readonly name: string
  readonly schedule: Schedule
  readonly world: WorldBug | null
  /** What it breaks. */
  readonly breaks: Invariant
}

const inScheduler = (name: keyof typeof schedulerBugs, breaks: Invariant): PlantedBug => ({
  name,
  schedule: schedulerBugs[name],
  world: null,
  breaks,
})
const inWorld = (world: WorldBug, breaks: Invariant): PlantedBug => ({ name: world, schedule, world, breaks })

export const plantedBugs: readonly PlantedBug[] = [
  inScheduler('any result is taken', 'an attempt is ended by the worker that has it'),
  inScheduler('kept before it is', 'a worker forgets only what is dealt with'),
  inScheduler('what a lost worker had is forgotten', 'every rollout is answered'),
  inScheduler('a greeting worker has everything', 'every rollout is answered'),
  inScheduler('nobody is fenced', 'a worker forgets what is not its own'),
  inScheduler('leases never end', 'every rollout is answered'),
  inScheduler('lost connections are not seen', 'only a connected worker that takes work gets some'),
  inScheduler('losses are not counted', 'every rollout is answered'),
  inScheduler('the last is first', 'rollouts begin in their order'),
  inScheduler('slots are not counted', 'a worker has no more than its slots'),
  inWorld('same attempt again', 'an attempt has a number of its own'),
  inWorld('turns of any attempt', 'turns are those of the current attempt'),
  inWorld('results of any attempt', 'a rollout has one result, of its current attempt'),
  inWorld('answer before commit', 'what was answered is durable'),
  inWorld('URLs stay open', 'an attempt that is over has no URLs'),
  inWorld('a lost worker scores 0', 'a lost worker is no reward'),
  inWorld('queue is forgotten', 'every rollout is answered'),
]
