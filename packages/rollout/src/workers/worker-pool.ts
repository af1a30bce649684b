import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { AttemptControl, AttemptExecutor } from '@aworld-train/core'
import {
  type AttemptAssignment,
  type AttemptName,
  type AttemptOutcome,
  type CoordinatorMessage,
  TrainError,
  type WorkerHello,
  WorkerMessage,
  workerProtocol,
} from '@aworld-train/protocol'
import { type WebSocket, WebSocketServer } from 'ws'
import { createFramedSocket, type FramedSocket } from '../frames/framed-socket.ts'
import { cancelled } from '../rollout-errors.ts'

export interface WorkerPoolLimits {
  /** Largest message of a worker, in bytes. Default 256 MiB. */
  readonly maxFrameBytes: number
  /** Bytes that wait for a worker that does not read; above it the connection is cut. Default 256 MiB. */
  readonly maxBufferedBytes: number
  /** Connections at once. Default 4,096. */
  readonly maxConnections: number
  /** A worker must have said hello by then. Default 10,000. */
  readonly helloMs: number
  /** How often both sides say that they are alive. Default 5,000. */
  readonly beatMs: number
  /** A connection that says nothing this long is dead. Default 15,000. */
  readonly deadMs: number
  /** How long the attempts of a lost connection are kept for its worker. Default 15,000. */
  readonly graceMs: number
}

export const defaultWorkerPoolLimits: WorkerPoolLimits = {
  maxFrameBytes: 256 * 1024 * 1024,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxConnections: 4_096,
  helloMs: 10_000,
  beatMs: 5_000,
  deadMs: 15_000,
  graceMs: 15_000,
}

export interface WorkerPoolOptions {
  /** The agent that workers must have. */
  readonly agentHash: string
  readonly limits?: Partial<WorkerPoolLimits> | undefined
  readonly onWarning?: ((warning: { readonly code: string; readonly message: string }) => void) | undefined
}

export interface WorkerPoolCounts {
  /** Workers that are connected, and the attempts that these run at once. */
  readonly workers: number
  readonly slots: number
  /** Attempts at a worker, and attempts that wait for one. */
  readonly assigned: number
  readonly waiting: number
  /** Since the start: workers that were lost with attempts, those attempts, workers that came again, workers that were not taken. */
  readonly lostWorkers: number
  readonly lostAttempts: number
  readonly reconnects: number
  readonly rejected: number
}

/** The workers of a coordinator, as one executor: an attempt goes to the worker with the most room, or waits for one. It rejects with WORKER_LOST when its worker is gone. */
export interface WorkerPool extends AttemptExecutor {
  /** Takes over a socket whose token has been checked. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  counts(): WorkerPoolCounts
  /** No worker can be had: what waits is rejected with `error`, and so is what comes. */
  fail(error: Error): void
  /** Asks all workers to finish what they hold and to leave. */
  drain(): void
  /** Ends all connections, as when the port closes; attempts are kept for the grace period. */
  disconnect(): void
  close(): void
}

interface Attempt {
  readonly assignment: AttemptAssignment
  readonly control: AttemptControl
  resolve(outcome: AttemptOutcome): void
  reject(error: unknown): void
  session: Session | null
}

/** One start of a worker. */
interface Session {
  readonly hello: WorkerHello
  /** `null` while its connection is lost. */
  connection: Connection | null
  readonly attempts: Map<string, Attempt>
  draining: boolean
  grace: NodeJS.Timeout | undefined
}

interface Connection extends Omit<FramedSocket, 'send'> {
  send(message: CoordinatorMessage): void
  reject(error: TrainError): void
}

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

const closeCodes = { rejected: 4000, replaced: 4002 }

export function createWorkerPool({ agentHash, onWarning, ...options }: WorkerPoolOptions): WorkerPool {
  const limits = { ...defaultWorkerPoolLimits, ...options.limits }
  const sessions = new Map<string, Session>()
  const connections = new Set<Connection>()
  const waiting: Attempt[] = []
  const totals = { lostWorkers: 0, lostAttempts: 0, reconnects: 0, rejected: 0 }
  const webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxFrameBytes,
    perMessageDeflate: false,
    clientTracking: false,
  })
  let paused = false
  let closed = false
  let failure: Error | null = null

  let beaten = performance.now()
  const beats = setInterval(() => {
    const now = performance.now()
    // After a pause of this process, messages that came meanwhile have not been read yet, so no connection counts as silent.
    const late = now - beaten > 2 * limits.beatMs
    beaten = now
    for (const connection of connections) connection.beat(late ? 0 : now)
  }, limits.beatMs)
  beats.unref()

  const warn = (code: string, message: string) => onWarning?.({ code, message })

  function broadcast(message: CoordinatorMessage): void {
    for (const { connection } of sessions.values()) connection?.send(message)
  }

  /** The worker with the most room. */
  function roomiest(): Session | null {
    let best: Session | null = null
    const room = ({ hello, attempts }: Session) => hello.slots - attempts.size
    for (const session of sessions.values()) {
      if (!session.connection || session.draining || room(session) < 1) continue
      if (!best || room(session) > room(best)) best = session
    }
    return best
  }

  function dispatch(): void {
    while (waiting.length > 0) {
      const session = roomiest()
      if (!session) return
      const attempt = waiting.shift() as Attempt
      attempt.session = session
      session.attempts.set(idOf(attempt.assignment), attempt)
      session.connection?.send({ type: 'assign', ...attempt.assignment })
    }
  }

  function cancel(attempt: Attempt): void {
    const { assignment, session, control } = attempt
    const { key, attempt: number } = assignment
    if (session?.connection) {
      session.connection.send({ type: 'cancel', key, attempt: number, reason: reasonOf(control.signal) })
      return
    }
    // Nobody can be asked for its result: it waits for a worker, or its worker is away.
    const place = waiting.indexOf(attempt)
    if (place >= 0) waiting.splice(place, 1)
    session?.attempts.delete(idOf(assignment))
    attempt.reject(cancelled(key, control.signal.reason))
  }

  function execute(assignment: AttemptAssignment, control: AttemptControl): Promise<AttemptOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<AttemptOutcome>()
    const attempt: Attempt = { assignment, control, resolve, reject, session: null }
    const onAbort = () => cancel(attempt)
    control.signal.addEventListener('abort', onAbort, { once: true })
    if (failure) reject(failure)
    else waiting.push(attempt)
    if (control.signal.aborted) cancel(attempt)
    else dispatch()
    return promise.finally(() => control.signal.removeEventListener('abort', onAbort))
  }

  /** The attempts of a worker that is gone are given to others by who asked for them. */
  function lose(session: Session, why: string): void {
    clearTimeout(session.grace)
    const { hello, attempts } = session
    if (sessions.get(hello.name) === session) sessions.delete(hello.name)
    if (attempts.size === 0) return
    totals.lostWorkers++
    totals.lostAttempts += attempts.size
    warn('WORKER_LOST', `Worker "${hello.name}" is gone with ${attempts.size} of its attempts: ${why}.`)
    for (const { assignment, reject } of attempts.values()) {
      const { key, attempt } = assignment
      reject(new TrainError('WORKER_LOST', `Attempt ${attempt} of rollout "${key}" was at worker "${hello.name}", which is gone: ${why}.`))
    }
    attempts.clear()
  }

  function leave(session: Session, connection: Connection): void {
    if (session.connection !== connection) return
    session.connection = null
    if (session.attempts.size === 0) lose(session, 'it has left')
    else
      session.grace = setTimeout(lose, limits.graceMs, session, `its connection was lost, and it did not come back in ${limits.graceMs} ms`)
  }

  function requireTaken({ name, incarnation, protocol, agentHash: hash }: WorkerHello): void {
    if (protocol !== workerProtocol) {
      const message = `Worker "${name}" speaks protocol ${protocol}, its coordinator ${workerProtocol}; install the same version of aworld-train on both.`
      throw new TrainError('WORKER_PROTOCOL', message)
    }
    if (hash !== agentHash) {
      const message = `Worker "${name}" has agent ${hash}, its coordinator ${agentHash}: the file of the agent, or its settings, differ. Give the worker the same file.`
      throw new TrainError('WORKER_AGENT', message)
    }
    const other = sessions.get(name)
    if (other?.connection && other.hello.incarnation !== incarnation) {
      throw new TrainError('WORKER_NAME', `Another worker named "${name}" is connected; start this one with another --name.`)
    }
  }

  function join(hello: WorkerHello, connection: Connection): Session {
    const before = sessions.get(hello.name)
    const isSame = before?.hello.incarnation === hello.incarnation
    if (before && !isSame) lose(before, 'it has started again')
    if (isSame) totals.reconnects++
    const { attempts, draining } = isSame ? before : { attempts: new Map<string, Attempt>(), draining: false }
    const session: Session = { hello, connection, attempts, draining, grace: undefined }
    for (const attempt of session.attempts.values()) attempt.session = session
    sessions.set(hello.name, session)
    if (isSame) {
      clearTimeout(before.grace)
      const { connection: replaced } = before
      // Its end is not that of the worker, whose attempts are the new session's.
      before.connection = null
      replaced?.close(closeCodes.replaced, 'The same worker has connected again.')
    }
    const { beatMs, deadMs, graceMs, maxFrameBytes } = limits
    connection.send({ type: 'welcome', protocol: workerProtocol, beatMs, leaseMs: deadMs + graceMs, maxFrameBytes })
    // Its clocks may stand still since before its connection was lost.
    connection.send({ type: paused ? 'hold' : 'resume' })
    fenceOthers(session, hello.holding)
    const holding = new Set(hello.holding.map(idOf))
    for (const [id, { assignment, control }] of session.attempts) {
      const { key, attempt } = assignment
      if (!holding.has(id)) connection.send({ type: 'assign', ...assignment })
      if (control.signal.aborted) connection.send({ type: 'cancel', key, attempt, reason: reasonOf(control.signal) })
    }
    dispatch()
    return session
  }

  /** A worker may hold only what it is assigned: the rest was given to others, or was assigned by an earlier coordinator. */
  function fenceOthers({ attempts, connection }: Session, holding: readonly AttemptName[]): void {
    for (const { key, attempt } of holding) {
      if (!attempts.has(idOf({ key, attempt }))) connection?.send({ type: 'fence', key, attempt })
    }
  }

  function serve(session: Session, connection: Connection, message: WorkerMessage): void {
    if (message.type === 'hello') {
      connection.unreadable('A worker says hello once, before everything else.')
      return
    }
    if (message.type === 'beat') {
      session.draining = message.draining
      fenceOthers(session, message.holding)
      return
    }
    const { key, attempt, outcome } = message
    const assigned = session.attempts.get(idOf(message))
    if (!assigned) {
      connection.send({ type: 'fence', key, attempt })
      return
    }
    session.attempts.delete(idOf(message))
    connection.send({ type: 'kept', key, attempt })
    assigned.control.onEnd()
    assigned.resolve(outcome)
    dispatch()
  }

  function accept(socket: WebSocket): void {
    let session: Session | null = null
    const framed = createFramedSocket({
      socket,
      messages: WorkerMessage,
      peer: 'worker',
      codes: { lost: 'WORKER_LOST', invalid: 'WORKER_INVALID' },
      limits,
      onWarning: warn,
      onFrame({ message }) {
        if (session) return serve(session, connection, message)
        if (message.type !== 'hello') return connection.unreadable(`A worker says hello first, not ${message.type}.`)
        clearTimeout(greeting)
        try {
          requireTaken(message)
          session = join(message, connection)
        } catch (error) {
          connection.reject(error as TrainError)
        }
      },
      onClose() {
        clearTimeout(greeting)
        connections.delete(connection)
        if (session) leave(session, connection)
      },
    })
    const connection: Connection = {
      ...framed,
      send: framed.send,
      reject({ code, message, retryable }) {
        totals.rejected++
        warn(code, message)
        framed.send({ type: 'rejected', error: { code, message, retryable } })
        framed.close(closeCodes.rejected, code)
      },
    }
    connections.add(connection)
    const greeting = setTimeout(() => {
      connection.reject(new TrainError('WORKER_INVALID', `The worker has not said hello in ${limits.helloMs} ms.`))
    }, limits.helloMs)
  }

  function disconnect(): void {
    for (const connection of connections) connection.close(1001, 'The coordinator stops.')
  }

  return {
    execute,
    hold() {
      paused = true
      broadcast({ type: 'hold' })
    },
    resume() {
      paused = false
      broadcast({ type: 'resume' })
    },
    upgrade(request, socket, head) {
      if (closed || connections.size >= limits.maxConnections) {
        socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
        return
      }
      webSockets.handleUpgrade(request, socket, head, accept)
    },
    counts() {
      const connected = [...sessions.values()].filter(({ connection }) => connection !== null)
      return {
        ...totals,
        workers: connected.length,
        slots: connected.reduce((sum, { hello }) => sum + hello.slots, 0),
        assigned: [...sessions.values()].reduce((sum, { attempts }) => sum + attempts.size, 0),
        waiting: waiting.length,
      }
    },
    fail(error) {
      failure ??= error
      for (const { reject } of waiting.splice(0)) reject(error)
    },
    drain: () => broadcast({ type: 'drain' }),
    disconnect,
    close() {
      closed = true
      clearInterval(beats)
      disconnect()
      for (const session of [...sessions.values()]) lose(session, 'its coordinator has stopped')
      for (const { assignment, reject } of waiting.splice(0)) reject(cancelled(assignment.key))
      webSockets.close()
    },
  }
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : 'its coordinator cancelled it'
}
