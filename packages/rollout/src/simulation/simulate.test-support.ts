import { Coordinator } from './coordinator.test-support.ts'
import type { Invariant, PlantedBug } from './planted-bugs.test-support.ts'
import { Workers } from './workers.test-support.ts'
import { createWorld, healSeconds } from './world.test-support.ts'

const limitSeconds = 1_500
/** How long workers may take to leave once all rollouts are answered. */
const leaveSeconds = 120
const workerCount = 4
const rolloutCount = 24

export interface Simulated {
  /** The first invariant that was broken. */
  readonly broken: Invariant | null
  readonly notes: readonly string[]
  /** How often each named state was reached. */
  readonly states: Readonly<Record<string, number>>
}

/** Resolves when everything that follows from the last action of the world has happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * Simulates one life of a coordinator, its workers and its clients, with every failure drawn from one seed. Until `healSeconds` things
 * fail, and only safety is required. After that nothing fails, and every rollout must be answered.
 */
export async function simulate(seed: number, bug: PlantedBug | null = null): Promise<Simulated> {
  const world = createWorld(seed, bug)
  const { now, after, random, rates, isFaulty, must } = world
  const coordinator = new Coordinator(world)
  const workers = new Workers(workerCount, world, coordinator)
  const { answers } = coordinator

  /** Lets the world go on until something holds, or until a time. */
  async function goOn(isDone: () => boolean, until: number): Promise<void> {
    while (world.broken() === null && !isDone() && now() < until && world.step()) await settled()
  }

  /** A client asks again until it has an answer. */
  function ask(key: string): void {
    if (answers.has(key)) return
    coordinator.ask(key)
    after(15, () => ask(key))
  }

  function misfortune(): void {
    if (!isFaulty()) return
    workers.suffer()
    const { process } = coordinator
    if (random() < rates.coordinatorKilled) process.kill()
    else if (process.isAwake() && random() < rates.coordinatorStopped) {
      world.reach('coordinator stands still')
      process.standStill(random() * 90)
    }
    after(2, misfortune)
  }

  for (let index = 0; index < rolloutCount; index++) {
    const key = `r${index}`
    after(random() * 60, () => ask(key))
    if (random() < rates.cancels) after(random() * 60, () => coordinator.cancel(key))
  }
  after(0, misfortune)

  await goOn(() => now() > healSeconds && answers.size === rolloutCount, limitSeconds)
  must(answers.size === rolloutCount, 'every rollout is answered')
  workers.close()
  await goOn(workers.haveLeft, now() + leaveSeconds)
  must(workers.haveLeft(), 'a worker forgets what is not its own')
  must(coordinator.keepsTurnsApart(), 'turns are those of the current attempt')
  must(coordinator.answeredTruly(), 'what was answered is durable')

  const life: Simulated = { broken: world.broken(), notes: world.notes, states: { ...world.states } }
  coordinator.removeDisk()
  // A bug may keep a process from its end.
  if (life.broken !== null) return life
  let isBuried = false
  const burial = Promise.all([coordinator.bury(), workers.bury()]).then(() => {
    isBuried = true
  })
  for (let steps = 0; !isBuried && steps < 10_000 && world.step(); steps++) await settled()
  await settled()
  if (!isBuried) throw new Error(`In seed ${seed} a process does not end.`)
  await burial
  return life
}
