import { createCoordinator } from './coordinator.test-support.ts'
import type { Invariant, PlantedBug } from './planted-bugs.test-support.ts'
import { createWorkers } from './workers.test-support.ts'
import { createWorld, healSeconds } from './world.test-support.ts'

const limitSeconds = 1_500
const workerCount = 4
const rolloutCount = 24

export interface Simulated {
  /** The first invariant that was broken. */
  readonly broken: Invariant | null
  /** How often each named state was reached. */
  readonly states: Readonly<Record<string, number>>
}

/**
 * Simulates one life of a coordinator, its workers and its clients, with every failure drawn from one seed. Until `healSeconds` things
 * fail, and only safety is required. After that nothing fails, and every rollout must be answered.
 */
export function simulate(seed: number, bug: PlantedBug | null = null): Simulated {
  const world = createWorld(seed, bug)
  const { now, after, random, rates, isFaulty, must } = world
  const coordinator: ReturnType<typeof createCoordinator> = createCoordinator(world, () => workers)
  const workers: ReturnType<typeof createWorkers> = createWorkers(workerCount, world, () => coordinator)
  const { whenAwake, answers } = coordinator

  /** A client asks again until it has an answer. */
  function ask(key: string): void {
    if (answers.has(key)) return
    if (coordinator.isUp()) coordinator.ask(key)
    after(15, () => whenAwake(() => ask(key)))
  }

  function misfortune(): void {
    if (!isFaulty()) return
    workers.suffer()
    if (random() < rates.coordinatorKilled) coordinator.kill()
    else if (random() < rates.coordinatorStopped) coordinator.standStill(random() * 90)
    after(2, misfortune)
  }

  function tick(): void {
    coordinator.tick()
    after(1, tick)
  }

  for (let index = 0; index < rolloutCount; index++) {
    const key = `r${index}`
    after(random() * 60, () => whenAwake(() => ask(key)))
    if (random() < rates.cancels) after(random() * 60, () => whenAwake(() => coordinator.cancel(key)))
  }
  workers.start()
  tick()
  after(0, misfortune)

  const isSettled = () => now() > healSeconds && answers.size === rolloutCount && workers.haveNothing()
  for (let count = 0; world.broken() === null && now() < limitSeconds && world.step(); count++)
    if ((count & 255) === 0 && isSettled()) break
  must(coordinator.answeredTruly(), 'what was answered is durable')
  must(answers.size === rolloutCount, 'every rollout is answered')
  must(workers.haveNothing(), 'a worker forgets what is not its own')
  return { broken: world.broken(), states: world.states }
}
