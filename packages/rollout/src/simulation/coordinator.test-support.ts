import type { PolicyEndpoint, RolloutState } from '@aworld-train/core'
import { sleep } from '../clock.ts'
import type { FrameSocket } from '../frames/framed-socket.ts'
import { createRolloutRunner } from '../rollout-runner.ts'
import { createRolloutService } from '../service/rollout-service.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { memoryGateway } from '../testing/memory-gateway.ts'
import { exactReward, program, rolloutRequest } from '../testing/rollout-fixtures.ts'
import { createWorkerPool, type WorkerPool } from '../workers/worker-pool.ts'
import { createProcess, type SimulatedProcess } from './process.test-support.ts'
import { SimulatedDisk } from './store.test-support.ts'
import { concurrency, idOf, Watch } from './watch.test-support.ts'
import { leaseSeconds, type World } from './world.test-support.ts'

/** The agent of coordinators and workers. */
export const agent = { hash: 'agent', parts: {} }

/** A process with a service, its runner, its store and its pool of workers. */
interface Running {
  readonly process: SimulatedProcess
  readonly service: ReturnType<typeof createRolloutService>
  readonly pool: WorkerPool
  /** Questions of clients that wait for an answer. */
  readonly asking: Set<string>
  call(endpoint: PolicyEndpoint, turn: number): Promise<string>
}

/** The coordinator's process, which may be killed at any moment and starts again over the same disk, and the wishes of its clients. */
export class Coordinator {
  readonly answers = new Map<string, RolloutState['status']>()
  readonly #world: World
  readonly #disk: SimulatedDisk
  readonly #starts: Running[] = []
  #current: Running
  /** Rollouts that clients were promised, those that they no longer want, and answers of the model that agents got. */
  readonly #receipts = new Set<string>()
  readonly #unwanted = new Set<string>()
  readonly #turns: string[] = []

  constructor(world: World) {
    this.#world = world
    this.#disk = new SimulatedDisk(world)
    this.#current = this.#start()
  }

  #start(): Running {
    const world = this.#world
    const process = createProcess(world)
    const { bug, random, rates, must } = world
    const watch = new Watch(world, process, (key) => {
      if (random() < rates.cancels / 3) world.after(random() * 0.1, () => this.cancel(key))
    })
    const opened = this.#disk.open(process)
    const store = watch.store(bug?.store?.(opened) ?? opened)
    const queued = new Set(opened.submissions().map(({ key }) => key))
    must(
      [...this.#receipts].every((key) => queued.has(key) || opened.episode(key) || this.#unwanted.has(key)),
      'what was answered is durable',
    )
    const memory = memoryGateway((_, { rollout: key, attempt }, call) => {
      const content = `${idOf({ key, attempt })} turn ${call}`
      return {
        content,
        async generate() {
          watch.called({ key, attempt })
          await sleep(process.clock, random() * 3000)
          const tokenIds = Int32Array.of(call, attempt)
          return {
            tokenIds,
            logprobs: new Float32Array(tokenIds.length),
            finishReason: { unified: 'stop', raw: 'stop' },
            weightVersions: [{ fromToken: 0, version: 0 }],
            cachedTokens: 0,
          }
        },
      }
    })
    const start = `${this.#starts.length} `
    const gateway: typeof memory = {
      ...memory,
      open(request) {
        const session = memory.open(request)
        const planted = bug?.session?.(session) ?? session
        return { ...planted, endpoint: (name) => ({ ...session.endpoint(name), baseUrl: start + session.endpoint(name).baseUrl }) }
      },
    }
    const pool = createWorkerPool({ agent, clock: process.clock, limits: { beatMs: (leaseSeconds * 1000) / 3 } })
    const service = createRolloutService({
      store,
      // A task that kills its workers has many attempts, through no fault of the coordinator.
      limits: { maxAttemptsOfRestarts: Number.POSITIVE_INFINITY },
      openRunner: (onEvent) =>
        createRolloutRunner(
          {
            program: program(
              () => Promise.reject(new Error('The agent ran beside its coordinator.')),
              [{ name: 'agent', trainable: true }],
            ),
            gateway,
            environment: memoryEnvironment(),
            workers: pool,
            reward: exactReward(),
            store,
            answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
            concurrency,
            clock: process.clock,
            onEvent,
          },
          watch.decide,
        ),
    })
    const running: Running = {
      process,
      service,
      pool,
      asking: new Set(),
      async call({ baseUrl }, turn) {
        const isItsOwn = baseUrl.startsWith(start)
        if (!isItsOwn) world.reach('call to a closed URL')
        const url = isItsOwn ? baseUrl.slice(start.length) : ''
        const messages = [{ role: 'user', content: `Turn ${turn}` }] as const
        const message = await memory.call({ baseUrl: url, apiKey: '', model: '' }, messages).catch((error: { readonly code?: string }) => {
          if (isItsOwn && error.code === 'GATEWAY_UNAUTHORIZED') world.reach('call to a closed URL')
          throw error
        })
        return message.content!
      },
    }
    process.onKill(() => {
      world.reach('coordinator killed')
      world.after(1 + random() * 5, () => {
        this.#current = this.#start()
      })
    })
    this.#starts.push(running)
    return running
  }

  get process(): SimulatedProcess {
    return this.#current.process
  }

  accept(socket: FrameSocket): void {
    this.#current.pool.accept(socket)
  }

  /** The launcher of a worker reports that its process has ended. */
  exited(name: string): void {
    const { process, pool } = this.#current
    process.take(() => pool.exit(name))
  }

  /** Hands a model call to the process that has this URL, if that is up. Calls `answer` with the content. */
  callModel(endpoint: PolicyEndpoint, turn: number, answer: (content: string | null) => void): void {
    const { process, call } = this.#current
    if (!process.isUp()) {
      answer(null)
      return
    }
    let isOpen = true
    const settle = (content: string | null) => {
      if (isOpen) answer(content)
      isOpen = false
    }
    process.onKill(() => settle(null))
    process.take(() => {
      call(endpoint, turn).then(
        (content) => {
          if (isOpen) this.#turns.push(content)
          settle(content)
        },
        () => settle(null),
      )
    })
  }

  /** A client asks for its rollout. It submits until that is accepted, cancels until that is answered, and waits until there is a result. */
  ask(key: string): void {
    const { process, service, asking } = this.#current
    process.take(() => {
      const isWanted = !this.#unwanted.has(key)
      const question = `${key} ${isWanted}`
      if (asking.has(question)) return
      asking.add(question)
      const answered = isWanted ? this.#submit(service, key) : service.cancel(key)
      answered.then(
        (state) => {
          asking.delete(question)
          if (process.isUp()) this.#answer(key, state)
        },
        (error: { readonly code?: string }) => {
          asking.delete(question)
          if (!isWanted && error.code === 'ROLLOUT_UNKNOWN' && process.isUp()) this.answers.set(key, 'cancelled')
        },
      )
    })
  }

  async #submit(service: Running['service'], key: string): Promise<RolloutState> {
    const { process } = this.#current
    if (!this.#receipts.has(key)) {
      await service.accept(rolloutRequest(key))
      if (process.isUp()) this.#receipts.add(key)
    }
    return service.wait(key, { samples: false })
  }

  #answer(key: string, { status, error }: RolloutState): void {
    if (this.answers.has(key)) return
    if (status === 'interrupted') {
      if (this.#unwanted.has(key)) this.answers.set(key, 'cancelled')
      return
    }
    const isTrue = status === 'done' || (status === 'cancelled' && this.#unwanted.has(key))
    if (!isTrue) this.#world.note(`${key} is ${status}: ${error?.code} ${error?.message}`)
    this.#world.must(isTrue, 'no rollout is given up')
    this.answers.set(key, status)
  }

  cancel(key: string): void {
    this.#unwanted.add(key)
    this.ask(key)
  }

  /** Whether the turns on disk were sampled in their attempts. */
  keepsTurnsApart(): boolean {
    return this.#disk.turns().every(({ content, ...name }) => content.startsWith(`${idOf(name)} `))
  }

  /** Whether every answer was about what is on disk. */
  answeredTruly(): boolean {
    const stored = new Set(this.#disk.turns().map(({ content }) => content))
    const done = this.#disk.database.prepare('SELECT r.key FROM episodes e JOIN rollouts r ON r.id = e.rollout').all()
    const keys = new Set(done.map(({ key }) => key))
    return this.#turns.every((turn) => stored.has(turn)) && [...this.answers].every(([key, how]) => how === 'cancelled' || keys.has(key))
  }

  removeDisk(): void {
    this.#disk.remove()
  }

  /** Ends every process that was started. */
  async bury(): Promise<void> {
    const closing = this.#starts.map(async ({ process, service, pool }) => {
      process.bury()
      pool.close()
      await service.close()
    })
    await Promise.all(closing)
  }
}
