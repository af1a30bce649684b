import type { IncomingMessage, ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { TrainError, type WorkerEnvironment, type WorkerHello, WorkerMessage, workerProtocol } from '@aworld-train/core'
import { WebSocketServer } from 'ws'
import { type Clock, processClock } from '../clock.ts'
import { createFramedSocket, type FramedSocket, type FrameSocket } from '../frames/framed-socket.ts'
import type { RolloutWorkers, WorkerSource } from '../rollout-workers.ts'
import { type AgentIdentity, firstDifference } from './agent-identity.ts'
import { type AnnouncedFiles, createAnnouncedFiles, type FileOf } from './announced-files.ts'
import { defaultWorkerPoolLimits, type WorkerPoolLimits } from './worker-pool-limits.ts'
import { type SessionConnection, WorkerSession } from './worker-session.ts'

export interface WorkerPoolOptions {
  /** The agent that workers must have. */
  readonly agent: AgentIdentity
  /** Settings by which workers run tools; the workers' defaults where absent. */
  readonly environment?: WorkerEnvironment | undefined
  /** Finds the files of tasks, and says which of them workers may have. Default: every path, relative to the working directory. */
  readonly fileOf?: FileOf | undefined
  readonly limits?: Partial<WorkerPoolLimits> | undefined
  readonly onWarning?: ((warning: { readonly code: string; readonly message: string }) => void) | undefined
  /** Default: the clock of this process. */
  readonly clock?: Clock | undefined
}

/**
 * Connections of workers in other processes. The runner that the pool is attached to decides what they are assigned
 * and how long they are waited for.
 */
export interface WorkerPool extends WorkerSource {
  /** Takes over a socket whose token has been checked. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Takes over a connection. */
  accept(socket: FrameSocket): void
  /** Answers a request below `filesPath` whose token has been checked, with the file of a task. */
  sendFile(request: IncomingMessage, response: ServerResponse): Promise<void>
  /**
   * The worker's launcher reports that its process has ended; its attempts begin again at once. Returns whether the worker had connected.
   */
  exit(name: string): boolean
  /** No worker can be had. Waiting and later rollouts fail with `error`. */
  fail(error: Error): void
  /** Asks all workers to finish the attempts that they hold and to leave. */
  drain(): void
  /** Ends all connections, as when the port closes; workers may reconnect. */
  disconnect(): void
  close(): void
}

interface Connection extends SessionConnection, Pick<FramedSocket, 'beat' | 'unreadable'> {
  reject(error: TrainError): void
}

const closeCodes = { normal: 1000, goingAway: 1001, rejected: 4000, replaced: 4002, silent: 4003 }

export const createWorkerPool = (options: WorkerPoolOptions): WorkerPool => new SocketPool(options)

class SocketPool implements WorkerPool {
  readonly sendFile: AnnouncedFiles['answer']
  readonly #options: WorkerPoolOptions
  readonly #limits: WorkerPoolLimits
  readonly #leaseMs: number
  readonly #clock: Clock
  readonly #announce: AnnouncedFiles['announce']
  readonly #webSockets: WebSocketServer
  readonly #endBeats: () => void
  readonly #sessions = new Map<string, WorkerSession>()
  readonly #connections = new Set<Connection>()
  #workers: RolloutWorkers | null = null
  #failure: Error | null = null

  constructor(options: WorkerPoolOptions) {
    const { fileOf = (path) => resolve(path), clock = processClock } = options
    const { announce, answer } = createAnnouncedFiles(fileOf)
    const limits = { ...defaultWorkerPoolLimits, ...options.limits }
    this.sendFile = answer
    this.#options = options
    this.#limits = limits
    this.#leaseMs = limits.deadMs + limits.graceMs
    this.#clock = clock
    this.#announce = announce
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: limits.maxFrameBytes,
      perMessageDeflate: false,
      clientTracking: false,
    })
    // Pings tell workers that their coordinator is alive.
    this.#endBeats = clock.every(limits.beatMs, () => {
      for (const connection of this.#connections) connection.beat(0)
    })
  }

  attach(workers: RolloutWorkers): void {
    this.#workers = workers
    if (this.#failure) workers.fail(this.#failure)
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!this.#workers || this.#connections.size >= this.#limits.maxConnections) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    this.#webSockets.handleUpgrade(request, socket, head, (each) => this.accept(each))
  }

  accept(socket: FrameSocket): void {
    const { helloMs, maxBufferedBytes } = this.#limits
    let session: WorkerSession | null = null
    const framed = createFramedSocket({
      socket,
      clock: this.#clock,
      messages: WorkerMessage,
      peer: 'worker',
      codes: { lost: 'WORKER_LOST', invalid: 'WORKER_INVALID' },
      limits: { maxBufferedBytes, deadMs: Number.POSITIVE_INFINITY },
      onWarning: (code, message) => this.#warn(code, message),
      onFrame: ({ message }) => {
        if (session) return this.#serve(session, connection, message)
        if (message.type !== 'hello') return connection.unreadable(`A worker says hello first, not ${message.type}.`)
        endGreeting()
        try {
          this.#requireTaken(message)
        } catch (error) {
          return connection.reject(error as TrainError)
        }
        session = this.#greet(message, connection)
      },
      onClose: (code) => {
        endGreeting()
        this.#connections.delete(connection)
        if (session?.connection !== connection) return
        session.connection = null
        if (code === closeCodes.normal) this.#workers!.leave(session.name)
        else this.#workers!.disconnect(session.name)
      },
    })
    const connection: Connection = {
      ...framed,
      reject: ({ code, message, retryable }) => {
        this.#warn(code, message)
        framed.send({ type: 'rejected', error: { code, message, retryable } })
        framed.close(closeCodes.rejected, code)
      },
    }
    this.#connections.add(connection)
    const endGreeting = this.#clock.after(helloMs, () => {
      const message = `A worker has not said hello in ${helloMs} ms; its connection was closed.`
      this.#warn('WORKER_INVALID', message)
      // No refusal: its process may have stood still, and connects again.
      framed.close(closeCodes.silent, message)
    })
  }

  exit(name: string): boolean {
    const session = this.#sessions.get(name)
    if (session) session.hasExited = true
    this.#workers?.exit(name)
    return session !== undefined
  }

  fail(error: Error): void {
    this.#failure ??= error
    this.#workers?.fail(this.#failure)
  }

  drain(): void {
    for (const { connection } of this.#sessions.values()) connection?.send({ type: 'drain' })
  }

  disconnect(): void {
    for (const connection of this.#connections) connection.close(closeCodes.goingAway, 'The coordinator stops.')
  }

  close(): void {
    this.#endBeats()
    this.disconnect()
    this.#workers = null
    this.#webSockets.close()
  }

  #requireTaken({ name, incarnation, protocol, agentHash: hash, agentParts: parts }: WorkerHello): void {
    const { agent } = this.#options
    if (protocol !== workerProtocol) {
      const message = `Worker "${name}" speaks protocol ${protocol}, its coordinator ${workerProtocol}; install the same version of aworld-train on both.`
      throw new TrainError('WORKER_PROTOCOL', message)
    }
    if (hash !== agent.hash) {
      const message = `Worker "${name}" has another agent than its coordinator: ${firstDifference(agent, { hash, parts })}. Give the worker the same project and packages.`
      throw new TrainError('WORKER_AGENT', message)
    }
    const other = this.#sessions.get(name)
    // A machine that is gone stays silent. A restart of its worker need not wait for the end of the lease.
    const isHeard = other?.connection && this.#clock.now() - other.connection.heardAt() < this.#limits.deadMs
    if (isHeard && other.incarnation !== incarnation) {
      throw new TrainError('WORKER_NAME', `Another worker named "${name}" is connected; start this one with another --name.`)
    }
  }

  #greet(hello: WorkerHello, connection: Connection): WorkerSession {
    const { name, incarnation, slots, holding, draining: isDraining } = hello
    const { beatMs, graceMs, stopMs, maxFrameBytes } = this.#limits
    const { environment = {} } = this.#options
    const leaseMs = this.#leaseMs
    const before = this.#sessions.get(name)
    const isSame = before?.incarnation === incarnation
    const session = isSame
      ? before
      : new WorkerSession({ hello, announce: this.#announce, onDismiss: (dismissed) => this.#dismiss(dismissed) })
    if (before && !isSame) this.#warnOfLoss(before, 'it has started again')
    const replaced = before?.connection
    if (before) before.connection = null
    session.connection = connection
    this.#sessions.set(name, session)
    // The worker lives on in the new connection.
    replaced?.close(closeCodes.replaced, 'The same worker has connected again.')
    connection.send({ type: 'welcome', protocol: workerProtocol, beatMs, leaseMs, maxFrameBytes, environment })
    this.#workers!.hello({ name, incarnation, isDraining, slots, holding, leaseMs, graceMs, stopMs, link: session })
    return session
  }

  #serve(session: WorkerSession, connection: Connection, message: WorkerMessage): void {
    const { name } = session
    if (message.type === 'hello') connection.unreadable('A worker says hello once, before everything else.')
    else if (message.type === 'beat') {
      if (message.draining) this.#workers!.drain(name)
      session.lastCalls = message.openCalls
      this.#workers!.beat(name, message.holding)
    } else if (!session.end(message)) {
      const { key, attempt } = message
      this.#workers!.result(name, { key, attempt })
    }
  }

  #dismiss(session: WorkerSession): void {
    const { name, connection, hasExited } = session
    const { graceMs } = this.#limits
    const silence = connection ? `it said nothing for ${this.#leaseMs} ms` : `it did not come back in ${graceMs} ms`
    this.#warnOfLoss(session, hasExited ? 'its process has ended' : silence)
    this.#sessions.delete(name)
    connection?.close(closeCodes.silent, `Nothing was heard of the worker for ${this.#leaseMs} ms.`)
  }

  #warnOfLoss({ name, awaited }: WorkerSession, why: string): void {
    if (awaited > 0) this.#warn('WORKER_LOST', `Worker "${name}" is gone with ${awaited} of its attempts, which begin again: ${why}.`)
  }

  #warn(code: string, message: string): void {
    this.#options.onWarning?.({ code, message })
  }
}
