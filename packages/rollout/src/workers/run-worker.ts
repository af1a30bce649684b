import { randomUUID } from 'node:crypto'
import {
  type AttemptAssignment,
  type AttemptExecutor,
  type AttemptName,
  type AttemptOutcome,
  CoordinatorMessage,
  errorCatalogue,
  TrainError,
  toTrainError,
  type WorkerAssign,
  type WorkerEnvironment,
  type WorkerFile,
  type WorkerMessage,
  type WorkerResult,
  type WorkerWelcome,
  workerProtocol,
} from '@aworld-train/core'
import { type Clock, processClock, sleep } from '../clock.ts'
import { createFramedSocket, type FramedSocket, type FrameSocket } from '../frames/framed-socket.ts'
import { watchStrayErrors } from '../stray-errors.ts'
import type { AgentIdentity } from './agent-identity.ts'
import { type CoordinatorConnection, connectWorker, createFileFetch, refusal } from './connect-worker.ts'
import { createFetchedFiles } from './fetched-files.ts'
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

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

interface Running extends AttemptName {
  readonly controller: AbortController
}

/**
 * Runs attempts for a coordinator until the worker is drained. Rejects with COORDINATOR_UNREACHABLE, with SERVICE_UNAUTHORIZED, and with
 * the coordinator's refusals: WORKER_PROTOCOL, WORKER_AGENT, WORKER_NAME. `connect` opens a connection to the coordinator.
 */
export async function runWorker(options: WorkerOptions, connect: () => Promise<FrameSocket> = () => connectWorker(options)): Promise<void> {
  const { openExecutor, baseDirectory = '.', signal, waitMs = 60_000, awayMs = waitMs, onWarning, onState, clock = processClock } = options
  const files = createFetchedFiles({ fetch: createFileFetch(options), baseDirectory })
  let incarnation = randomUUID()
  const running = new Map<string, Running>()
  /** Results that the coordinator has not confirmed. */
  const results = new Map<string, WorkerResult>()
  let socket: FramedSocket | null = null
  let welcome: WorkerWelcome | null = null
  let executor: AttemptExecutor | null = null
  let draining = signal.aborted
  let heardAt = clock.now()
  let endBeats = () => {}
  let endWait = () => {}
  let left: () => void = () => {}

  const send = (message: WorkerMessage) => socket?.send(message)
  const holding = (): AttemptName[] => [...running.values(), ...results.values()].map(({ key, attempt }) => ({ key, attempt }))
  const beat = () => {
    send({ type: 'beat', holding: holding(), draining, openCalls: [...(executor?.openCalls?.() ?? [])] })
    for (const result of results.values()) send(result)
    socket?.beat(clock.now())
  }

  function drain(): void {
    if (!draining) onState?.('draining')
    draining = true
    beat()
    leaveIfDone()
  }

  function leaveIfDone(): void {
    if (draining && running.size === 0 && results.size === 0) left()
  }

  function abandon(why: string): void {
    // A coordinator that still expects these attempts must not assign them again: their turns would mix with those of the first run.
    incarnation = randomUUID()
    for (const { key, controller } of running.values()) controller.abort(new TrainError('ROLLOUT_CANCELLED', `Rollout "${key}": ${why}.`))
    running.clear()
    results.clear()
    leaveIfDone()
  }

  function fence(name: AttemptName): void {
    running.get(idOf(name))?.controller.abort(new TrainError('ROLLOUT_CANCELLED', `Rollout "${name.key}" was given to another worker.`))
    running.delete(idOf(name))
    results.delete(idOf(name))
    leaveIfDone()
  }

  async function execute(assignment: AttemptAssignment, announced: readonly WorkerFile[], signal: AbortSignal): Promise<AttemptOutcome> {
    const { task } = assignment
    const placed = await files.place(task.files ?? [], announced, signal)
    try {
      const here = { ...assignment, task: { ...task, ...(task.files && { files: placed.paths }) } }
      return await executor!.execute(here, { signal, onEnd() {} })
    } finally {
      placed.release()
    }
  }

  async function run({ type: _, files: announced = [], ...assignment }: WorkerAssign): Promise<void> {
    const id = idOf(assignment)
    if (running.has(id) || results.has(id)) return
    const { key, attempt } = assignment
    const entry = { key, attempt, controller: new AbortController() }
    running.set(id, entry)
    const outcome = await execute(assignment, announced, entry.controller.signal).catch((cause: unknown) =>
      failedOutcome(toTrainError(cause, 'AGENT_FAILED')),
    )
    // An attempt that was fenced in the meantime has no result.
    if (running.get(id) !== entry) return
    running.delete(id)
    const result = sendable({ type: 'result', key, attempt, outcome }, welcome?.maxFrameBytes)
    results.set(id, result)
    send(result)
  }

  function take(message: CoordinatorMessage): void {
    switch (message.type) {
      case 'welcome':
        endWait()
        welcome = message
        executor ??= openExecutor(message.environment)
        onState?.('connected')
        endBeats = clock.every(message.beatMs, beat)
        beat()
        return
      case 'assign':
        void run(message)
        return
      case 'hold':
        executor?.hold()
        return
      case 'resume':
        executor?.resume()
        return
      case 'cancel':
        running.get(idOf(message))?.controller.abort(new TrainError('ROLLOUT_CANCELLED', message.reason))
        return
      case 'fence':
        fence(message)
        return
      case 'kept':
        results.delete(idOf(message))
        leaveIfDone()
        return
      case 'drain':
        drain()
        return
      case 'rejected':
        throw refusal(message.error)
      case 'error':
        onWarning?.({ code: 'WORKER_INVALID', message: message.message })
    }
  }

  /** Serves one connection. Resolves when it is lost; rejects when the coordinator refuses this worker. */
  async function serveOnce(stop: AbortSignal): Promise<void> {
    const opened = await connect()
    // The worker has left in the meantime.
    if (stop.aborted) return opened.terminate()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket = createFramedSocket({
      socket: opened,
      clock,
      messages: CoordinatorMessage,
      peer: 'coordinator',
      codes: { lost: 'COORDINATOR_UNREACHABLE', invalid: 'WORKER_INVALID' },
      limits: {
        maxBufferedBytes,
        get deadMs() {
          return welcome?.leaseMs ?? Number.POSITIVE_INFINITY
        },
      },
      onWarning: (code, message) => onWarning?.({ code, message }),
      onFrame({ message }) {
        try {
          take(message)
        } catch (error) {
          reject(error)
        }
      },
      onClose: () => resolve(),
    })
    const { name, slots, agent } = options
    const identity = { agentHash: agent.hash, agentParts: agent.parts }
    send({ type: 'hello', protocol: workerProtocol, name, incarnation, slots, ...identity, draining, holding: holding() })
    endWait = clock.after(welcomeMs, () =>
      reject(new TrainError('COORDINATOR_UNREACHABLE', `The coordinator has not answered its worker in ${welcomeMs} ms.`)),
    )
    try {
      await promise
    } finally {
      endWait()
      endBeats()
      heardAt = Math.max(heardAt, socket.heardAt())
      socket = null
      opened.terminate()
    }
  }

  async function serve(stop: AbortSignal): Promise<void> {
    for (let delayMs = firstDelayMs, since = clock.now(); !stop.aborted; ) {
      try {
        await serveOnce(stop)
        if (stop.aborted) return
        onState?.('lost')
        delayMs = firstDelayMs
        since = clock.now()
      } catch (error) {
        const { code, message } = error as TrainError
        const patienceMs = welcome ? awayMs : waitMs
        // An earlier start of this worker may still count as connected if its machine vanished without a word.
        if (code === 'WORKER_NAME') {
          if (clock.now() - since > patienceMs) throw error
          onWarning?.({ code, message })
        } else if (code !== 'COORDINATOR_UNREACHABLE') throw error
        else if (clock.now() - since > patienceMs)
          throw new TrainError(code, `${message} It was waited for ${Math.round(patienceMs / 1000)} s. ${errorCatalogue[code].remedy}`)
      }
      if (welcome && clock.now() - heardAt > welcome.leaseMs) abandon('its worker has not heard of its coordinator for too long')
      await sleep(clock, delayMs, stop)
      delayMs = Math.min(2 * delayMs, longestDelayMs)
    }
  }

  const stop = new AbortController()
  const done = new Promise<void>((resolve) => {
    left = resolve
  })
  signal.addEventListener('abort', drain, { once: true })
  const unwatchErrors = watchStrayErrors((message) => onWarning?.({ code: 'AGENT_FAILED', message }))
  leaveIfDone()
  try {
    await Promise.race([serve(stop.signal), done])
  } finally {
    signal.removeEventListener('abort', drain)
    stop.abort()
    ;(socket as FramedSocket | null)?.close(1000, 'The worker leaves.')
    abandon('its worker has ended')
    await files.close()
    unwatchErrors()
  }
}
