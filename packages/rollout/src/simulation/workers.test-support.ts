import { type AgentProgram, type AttemptExecutor, type PolicyEndpoint, TrainError } from '@aworld-train/core'
import { createAttemptExecutor } from '../attempt-executor.ts'
import { sleep } from '../clock.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { program } from '../testing/rollout-fixtures.ts'
import { runWorker } from '../workers/run-worker.ts'
import { agent, type Coordinator } from './coordinator.test-support.ts'
import { Link } from './link.test-support.ts'
import { createProcess, type SimulatedProcess } from './process.test-support.ts'
import { idOf } from './watch.test-support.ts'
import { slots, type World } from './world.test-support.ts'

/** One start of a worker. */
interface Start {
  readonly process: SimulatedProcess
  readonly drain: AbortController
  ended: Promise<void>
  link: Link | null
  hasEnded: boolean
}

/** Processes that run agents, each of which starts again after its end. */
export class Workers {
  readonly #world: World
  readonly #coordinator: Coordinator
  readonly #starts: Start[] = []
  readonly #current = new Map<string, Start | null>()
  readonly #gone = new Set<string>()
  #isClosing = false
  #isBuried = false

  constructor(count: number, world: World, coordinator: Coordinator) {
    this.#world = world
    this.#coordinator = coordinator
    for (let index = 0; index < count; index++) world.after(world.random() * 3, () => this.#start(`w${index}`))
  }

  #start(name: string): void {
    if (this.#isClosing) return
    const world = this.#world
    const process = createProcess(world)
    const start: Start = { process, drain: new AbortController(), link: null, hasEnded: false, ended: Promise.resolve() }
    const { clock } = process
    const openExecutor = () =>
      this.#counted(createAttemptExecutor({ program: this.#agent(name, process), environment: memoryEnvironment(), clock }))
    const { signal } = start.drain
    const options = { url: 'http://coordinator', name, slots, agent, openExecutor, signal, waitMs: Number.MAX_SAFE_INTEGER, clock }
    start.ended = runWorker(options, () => this.#connect(start))
    this.#starts.push(start)
    this.#current.set(name, start)
    start.ended.then(
      () => this.#left(name, start),
      (error: TrainError) => {
        start.hasEnded = true
        if (!this.#isClosing) world.note(`${name} ended: ${error.code} ${error.message}`)
        world.must(this.#isClosing, 'a worker goes on')
      },
    )
  }

  #counted(executor: AttemptExecutor): AttemptExecutor {
    const { must, reach } = this.#world
    const running = new Set<string>()
    return {
      ...executor,
      async execute(assignment, control) {
        const id = idOf(assignment)
        must(running.size < slots, 'a worker has no more than its slots')
        running.add(id)
        const forget = () => {
          if (String(control.signal.reason).includes('not heard')) reach('worker gives up what it has')
          running.delete(id)
        }
        control.signal.addEventListener('abort', forget)
        return executor.execute(assignment, control).finally(() => running.delete(id))
      },
    }
  }

  async #connect(start: Start): Promise<Link['near']> {
    const world = this.#world
    const { process } = start
    await sleep(process.clock, world.random() * world.latency() * 100)
    if (this.#isBuried) throw new TrainError('CONFIG_INVALID', 'The world is over.')
    const target = this.#coordinator.process
    if (!target.isUp()) throw new TrainError('COORDINATOR_UNREACHABLE', 'The coordinator is down.')
    const link = new Link(world, process, target)
    start.link = link
    target.take(() => this.#coordinator.accept(link.far))
    return link.near
  }

  #agent(name: string, process: SimulatedProcess): AgentProgram {
    const world = this.#world
    const { random, rates, isFaulty, reach } = world
    return program(
      async (_, context) => {
        const { rollout: key, attempt, signal } = context
        const isDeaf = random() < 0.2
        for (let turn = 0, turns = 1 + Math.floor(random() * 5); turn < turns; turn++) {
          await sleep(process.clock, 500 + random() * 8000, isDeaf ? undefined : signal)
          if (!isDeaf) signal.throwIfAborted()
          if (rates.killer && key === 'r0' && process.isUp()) {
            reach('task kills its worker')
            this.#kill(name, 1 + random() * 5)
          }
          const answer = await this.#callModel(process, context.policy('agent'), turn)
          if (answer === null) throw new Error('The model did not answer.')
        }
        if (isFaulty() && random() < rates.fails) throw new TrainError('TOOL_SERVER_DIED', 'The server ended.')
        return { answer: idOf({ key, attempt }), messages: [] }
      },
      [{ name: 'agent', trainable: true }],
    )
  }

  /** A model call goes to its URL and not through the worker's connection. */
  #callModel(process: SimulatedProcess, endpoint: PolicyEndpoint, turn: number): Promise<string | null> {
    const { random, latency } = this.#world
    const travel = (act: () => void) => process.clock.after(random() * latency() * 1000, act)
    return new Promise((resolve) => {
      travel(() => {
        if (this.#isBuried) resolve(null)
        else this.#coordinator.callModel(endpoint, turn, (answer) => travel(() => resolve(answer)))
      })
    })
  }

  #left(name: string, start: Start): void {
    start.hasEnded = true
    if (this.#isClosing) return
    start.process.kill()
    this.#world.after(5 + this.#world.random() * 30, () => this.#start(name))
  }

  #kill(name: string, restartSeconds: number): void {
    const { after, random, rates } = this.#world
    this.#current.get(name)?.process.kill()
    this.#current.set(name, null)
    // The launcher reports this before it starts the worker again.
    if (rates.launches) after(random() * Math.min(1, restartSeconds), () => this.#coordinator.exited(name))
    if (!this.#gone.has(name)) after(restartSeconds, () => this.#start(name))
  }

  /** Breaks what may break now. */
  suffer(): void {
    const { random, rates, reach } = this.#world
    if (random() < rates.allKilled) {
      reach('all workers killed')
      for (const name of this.#current.keys()) if (this.#current.get(name)) this.#kill(name, random() * 10)
    }
    for (const [name, start] of this.#current) {
      if (!start || start.hasEnded) continue
      if (random() < rates.workerKilled) {
        reach('worker killed')
        if (random() < 0.1 && this.#current.size - this.#gone.size > 2) {
          reach('worker gone for good')
          this.#gone.add(name)
        }
        this.#kill(name, random() * 40)
      } else if (start.process.isAwake() && random() < rates.workerStopped) {
        reach('worker stopped')
        start.process.standStill(random() * 90)
      } else if (random() < rates.connectionLost) {
        if (start.link?.isWhole()) reach('connection lost')
        start.link?.break()
      } else if (!start.drain.signal.aborted && random() < rates.drains) {
        reach('worker drains')
        start.process.take(() => start.drain.abort())
      }
    }
  }

  /** Asks the workers to leave, which each does once it has nothing any more. */
  close(): void {
    this.#isClosing = true
    for (const start of this.#current.values()) start?.drain.abort()
  }

  readonly haveLeft = (): boolean => {
    return [...this.#current.values()].every((start) => !start || start.hasEnded)
  }

  /** Ends every process that was started. */
  async bury(): Promise<void> {
    this.#isClosing = true
    this.#isBuried = true
    for (const { process, drain, link } of this.#starts) {
      process.bury()
      drain.abort()
      link?.bury()
    }
    await Promise.allSettled(this.#starts.map(({ ended }) => ended))
  }
}
