import { randomUUID } from 'node:crypto'
import {
  type AttemptAssignment,
  type AttemptExecutor,
  type AttemptOutcome,
  CoordinatorMessage,
  errorCatalogue,
  TrainError,
  toTrainError,
  type WorkerAssign,
  type WorkerEnvironment,
  type WorkerFile,
  type WorkerMessage,
  type WorkerWelcome,
  workerProtocol,
} from '@aworld-train/core'
import { type Clock, processClock, sleep } from '../clock.ts'
import { createFramedSocket, type FramedSocket, type FrameSocket } from '../frames/framed-socket.ts'
import { watchStrayErrors } from '../stray-errors.ts'
import type { AgentIdentity } from './agent-identity.ts'
import { type CoordinatorConnection, connectWorker, createFileFetch, refusal } from './connect-worker.ts'
import { createFetchedFiles, type FetchedFiles } from './fetched-files.ts'
import { WorkerAttempts } from './worker-attempts.ts'
import { failedOutcome, sendable } from './worker-results.ts'

export interface WorkerOptions extends CoordinatorConnection {
  /** Unique among the workers of the coordinator. */
  readonly name: string
  /** Attempts at once. */
  readonly slots: number
  /** Must equal the identity that the coordinator computes. */
  readonly agent: AgentIdentity
  /** Opens the executor of the agents, with the coordinator's settings for tools. Called once. */
  readonly openExecutor: (environment: WorkerEnvironment) => AttemptExecutor
  /**
   * Folder that paths of tasks' files are relative to. A file that is not there is fetched from the coordinator.
   * Default: the working directory.
   */
  readonly baseDirectory?: string | undefined
  /** Aborts when the worker should finish the attempts that it holds, take no more and leave. */
  readonly signal: AbortSignal
  /** How long to wait for a coordinator that has never answered. Default 60,000. */
  readonly waitMs?: number | undefined
  /** How long to wait for a coordinator that was connected before, such as during its restart. Default `waitMs`. */
  readonly awayMs?: number | undefined
  readonly onWarning?: ((warning: { readonly code: string; readonly message: string }) => void) | undefined
  readonly onState?: ((state: 'connected' | 'lost' | 'draining') => void) | undefined
  /** Default: the clock of this process. */
  readonly clock?: Clock | undefined
}

const firstDelayMs = 100
const longestDelayMs = 2_000

/** How long a coordinator may take to answer a hello. A connection that is lost without a sign has no answer. */
const welcomeMs = 30_000

/** Most bytes that wait for a coordinator that does not read; beyond that the connection is cut. */
const maxBufferedBytes = 256 * 1024 * 1024

/**
 * Runs attempts for a coordinator until the worker is drained. Rejects with COORDINATOR_UNREACHABLE, with SERVICE_UNAUTHORIZED, and with
 * the coordinator's refusals: WORKER_PROTOCOL, WORKER_AGENT, WORKER_NAME. `connect` opens a connection to the coordinator.
 */
export async function runWorker(options: WorkerOptions, connect: () => Promise<FrameSocket> = () => connectWorker(options)): Promise<void> {
  await new CoordinatedWorker(options, connect).run()
}

class CoordinatedWorker {
  readonly #options: WorkerOptions
  readonly #connect: () => Promise<FrameSocket>
  readonly #clock: Clock
  readonly #files: FetchedFiles
  readonly #attempts = new WorkerAttempts()
  /** Resolves when nothing is held and no more will be. */
  readonly #done = Promise.withResolvers<void>()
  #incarnation = randomUUID()
  #socket: FramedSocket | null = null
  #welcome: WorkerWelcome | null = null
  #executor: AttemptExecutor | null = null
  #isDraining: boolean
  #heardAt: number
  #endBeats = () => {}
  #endWait = () => {}

  constructor(options: WorkerOptions, connect: () => Promise<FrameSocket>) {
    const { baseDirectory = '.', signal, clock = processClock } = options
    this.#options = options
    this.#connect = connect
    this.#clock = clock
    this.#files = createFetchedFiles({ fetch: createFileFetch(options), baseDirectory })
    this.#isDraining = signal.aborted
    this.#heardAt = clock.now()
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    const stop = new AbortController()
    const drain = () => this.#drain()
    signal.addEventListener('abort', drain, { once: true })
    const unwatchErrors = watchStrayErrors((message) => this.#warn('AGENT_FAILED', message))
    this.#leaveIfDone()
    try {
      await Promise.race([this.#serve(stop.signal), this.#done.promise])
    } finally {
      signal.removeEventListener('abort', drain)
      stop.abort()
      this.#socket?.close(1000, 'The worker leaves.')
      this.#abandon('its worker has ended')
      await this.#files.close()
      unwatchErrors()
    }
  }

  async #serve(stop: AbortSignal): Promise<void> {
    const clock = this.#clock
    for (let delayMs = firstDelayMs, since = clock.now(); !stop.aborted; ) {
      try {
        await this.#serveOnce(stop)
        if (stop.aborted) return
        this.#options.onState?.('lost')
        delayMs = firstDelayMs
        since = clock.now()
      } catch (error) {
        this.#requirePatience(error as TrainError, clock.now() - since)
      }
      if (this.#welcome && clock.now() - this.#heardAt > this.#welcome.leaseMs)
        this.#abandon('its worker has not heard of its coordinator for too long')
      await sleep(clock, delayMs, stop)
      delayMs = Math.min(2 * delayMs, longestDelayMs)
    }
  }

  /** Throws where the coordinator is not tried again after `error`. */
  #requirePatience(error: TrainError, waitedMs: number): void {
    const { waitMs = 60_000, awayMs = waitMs } = this.#options
    const { code, message } = error
    const patienceMs = this.#welcome ? awayMs : waitMs
    // An earlier start of this worker may still count as connected if its machine vanished without a word.
    if (code === 'WORKER_NAME') {
      if (waitedMs > patienceMs) throw error
      this.#warn(code, message)
    } else if (code !== 'COORDINATOR_UNREACHABLE') throw error
    else if (waitedMs > patienceMs)
      throw new TrainError(code, `${message} It was waited for ${Math.round(patienceMs / 1000)} s. ${errorCatalogue[code].remedy}`)
  }

  /** Serves one connection. Resolves when it is lost; rejects when the coordinator refuses this worker. */
  async #serveOnce(stop: AbortSignal): Promise<void> {
    const opened = await this.#connect()
    // The worker has left in the meantime.
    if (stop.aborted) return opened.terminate()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leaseMs = () => this.#welcome?.leaseMs ?? Number.POSITIVE_INFINITY
    const socket = createFramedSocket({
      socket: opened,
      clock: this.#clock,
      messages: CoordinatorMessage,
      peer: 'coordinator',
      codes: { lost: 'COORDINATOR_UNREACHABLE', invalid: 'WORKER_INVALID' },
      limits: {
        maxBufferedBytes,
        get deadMs() {
          return leaseMs()
        },
      },
      onWarning: (code, message) => this.#warn(code, message),
      onFrame: ({ message }) => {
        try {
          this.#take(message)
        } catch (error) {
          reject(error)
        }
      },
      onClose: () => resolve(),
    })
    this.#socket = socket
    this.#greet()
    this.#endWait = this.#clock.after(welcomeMs, () =>
      reject(new TrainError('COORDINATOR_UNREACHABLE', `The coordinator has not answered its worker in ${welcomeMs} ms.`)),
    )
    try {
      await promise
    } finally {
      this.#endWait()
      this.#endBeats()
      this.#heardAt = Math.max(this.#heardAt, socket.heardAt())
      this.#socket = null
      opened.terminate()
    }
  }

  #greet(): void {
    const { name, slots, agent } = this.#options
    const identity = { agentHash: agent.hash, agentParts: agent.parts }
    const [incarnation, draining, holding] = [this.#incarnation, this.#isDraining, this.#attempts.names()]
    this.#send({ type: 'hello', protocol: workerProtocol, name, incarnation, slots, ...identity, draining, holding })
  }

  #take(message: CoordinatorMessage): void {
    switch (message.type) {
      case 'welcome':
        this.#endWait()
        this.#welcome = message
        this.#executor ??= this.#options.openExecutor(message.environment)
        this.#options.onState?.('connected')
        this.#endBeats = this.#clock.every(message.beatMs, () => this.#beat())
        this.#beat()
        return
      case 'assign':
        void this.#run(message)
        return
      case 'hold':
        this.#executor?.hold(message.rollout)
        return
      case 'resume':
        this.#executor?.resume(message.rollout)
        return
      case 'cancel':
        this.#attempts.cancel(message, message.reason)
        return
      case 'fence':
        this.#attempts.drop(message, `Rollout "${message.key}" was given to another worker.`)
        this.#leaveIfDone()
        return
      case 'kept':
        this.#attempts.confirm(message)
        this.#leaveIfDone()
        return
      case 'drain':
        this.#drain()
        return
      case 'rejected':
        throw refusal(message.error)
      case 'error':
        this.#warn('WORKER_INVALID', message.message)
    }
  }

  async #run({ type: _, files = [], ...assignment }: WorkerAssign): Promise<void> {
    const running = this.#attempts.begin(assignment)
    if (!running) return
    const { key, attempt, controller } = running
    const outcome = await this.#execute(assignment, files, controller.signal).catch((cause: unknown) =>
      failedOutcome(toTrainError(cause, 'AGENT_FAILED')),
    )
    // An attempt that was fenced in the meantime has no result.
    if (!this.#attempts.has(running)) return
    running.result = sendable({ type: 'result', key, attempt, outcome }, this.#welcome?.maxFrameBytes)
    this.#send(running.result)
  }

  async #execute(assignment: AttemptAssignment, announced: readonly WorkerFile[], signal: AbortSignal): Promise<AttemptOutcome> {
    const { task } = assignment
    const placed = await this.#files.place(task.files ?? [], announced, signal)
    try {
      const here = { ...assignment, task: { ...task, ...(task.files && { files: placed.paths }) } }
      return await this.#executor!.execute(here, { signal, onEnd() {} })
    } finally {
      placed.release()
    }
  }

  #beat(): void {
    const openCalls = [...(this.#executor?.openCalls?.() ?? [])]
    this.#send({ type: 'beat', holding: this.#attempts.names(), draining: this.#isDraining, openCalls })
    for (const result of this.#attempts.results()) this.#send(result)
    this.#socket?.beat(this.#clock.now())
  }

  #drain(): void {
    if (!this.#isDraining) this.#options.onState?.('draining')
    this.#isDraining = true
    this.#beat()
    this.#leaveIfDone()
  }

  #leaveIfDone(): void {
    if (this.#isDraining && this.#attempts.size === 0) this.#done.resolve()
  }

  #abandon(why: string): void {
    // A coordinator that still expects these attempts must not assign them again: their turns would mix with those of the first run.
    this.#incarnation = randomUUID()
    this.#attempts.dropAll(why)
    this.#leaveIfDone()
  }

  #send(message: WorkerMessage): void {
    this.#socket?.send(message)
  }

  #warn(code: string, message: string): void {
    this.#options.onWarning?.({ code, message })
  }
}
