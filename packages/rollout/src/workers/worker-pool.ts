import type { IncomingMessage, ServerResponse } from 'node:http'
import { resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import {
  type AttemptName,
  type AttemptOutcome,
  type CoordinatorMessage,
  type OpenToolCall,
  TrainError,
  type WorkerEnvironment,
  type WorkerFile,
  type WorkerHello,
  WorkerMessage,
  workerProtocol,
} from '@aworld-train/core'
import { WebSocketServer } from 'ws'
import { type Clock, processClock } from '../clock.ts'
import { createFramedSocket, type FramedSocket, type FrameSocket } from '../frames/framed-socket.ts'
import type { RolloutWorkers, WorkerLink, WorkerSource } from '../rollout-workers.ts'
import { type AgentIdentity, firstDifference } from './agent-identity.ts'
import { createAnnouncedFiles, type FileOf } from './announced-files.ts'
import { defaultWorkerPoolLimits, type WorkerPoolLimits } from './worker-pool-limits.ts'

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

/** A worker from its first hello until the runner forgets it. */
interface Session extends WorkerLink {
  readonly incarnation: string
  hasExited: boolean
  /** Its open tool calls, as it last reported them. */
  lastCalls: readonly OpenToolCall[]
  /** `null` while its connection is lost. */
  connection: Connection | null
  /** Callbacks that wait for the outcome of each attempt. */
  readonly results: Map<string, (outcome: AttemptOutcome) => void>
}

interface Connection extends Omit<FramedSocket, 'send'> {
  send(message: CoordinatorMessage): void
  reject(error: TrainError): void
}

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

const closeCodes = { normal: 1000, goingAway: 1001, rejected: 4000, replaced: 4002, silent: 4003 }

export function createWorkerPool(poolOptions: WorkerPoolOptions): WorkerPool {
  const { agent, environment = {}, fileOf = (path) => resolve(path), onWarning, clock = processClock, ...options } = poolOptions
  const limits = { ...defaultWorkerPoolLimits, ...options.limits }
  const { beatMs, deadMs, graceMs, stopMs, maxFrameBytes, maxBufferedBytes } = limits
  const leaseMs = deadMs + graceMs
  const sessions = new Map<string, Session>()
  const connections = new Set<Connection>()
  const announced = createAnnouncedFiles(fileOf)
  const webSockets = new WebSocketServer({ noServer: true, maxPayload: maxFrameBytes, perMessageDeflate: false, clientTracking: false })
  let workers: RolloutWorkers | null = null
  let failure: Error | null = null

  // Pings tell workers that their coordinator is alive.
  const endBeats = clock.every(beatMs, () => {
    for (const connection of connections) connection.beat(0)
  })

  const warn = (code: string, message: string) => onWarning?.({ code, message })

  function warnOfLoss(name: string, { results }: Session, why: string): void {
    if (results.size > 0) warn('WORKER_LOST', `Worker "${name}" is gone with ${results.size} of its attempts, which begin again: ${why}.`)
  }

  function createSession({ name, incarnation, agentHash }: WorkerHello): Session {
    const results = new Map<string, (outcome: AttemptOutcome) => void>()
    const send = (message: CoordinatorMessage) => session.connection?.send(message)
    const session: Session = {
      agent: agentHash,
      lastCalls: [],
      openCalls: () => session.lastCalls,
      incarnation,
      hasExited: false,
      connection: null,
      results,
      execute(assignment, { signal }) {
        const { key, attempt, task } = assignment
        const { promise, resolve } = Promise.withResolvers<AttemptOutcome>()
        results.set(idOf(assignment), resolve)
        const cancel = () => send({ type: 'cancel', key, attempt, reason: reasonOf(signal) })
        const assign = (files?: WorkerFile[]) => {
          // The attempt may have been fenced while its files were being read.
          if (results.get(idOf(assignment)) !== resolve) return
          send({ type: 'assign', ...assignment, ...(files && { files }) })
          if (signal.aborted) cancel()
          else signal.addEventListener('abort', cancel, { once: true })
        }
        if (task.files?.length) void announced.announce(task.files).then(assign)
        else assign()
        return promise
      },
      hold: () => send({ type: 'hold' }),
      resume: () => send({ type: 'resume' }),
      fence({ key, attempt }) {
        results.delete(idOf({ key, attempt }))
        send({ type: 'fence', key, attempt })
      },
      kept: ({ key, attempt }) => send({ type: 'kept', key, attempt }),
      dismiss() {
        const { connection, hasExited } = session
        const silence = connection ? `it said nothing for ${leaseMs} ms` : `it did not come back in ${graceMs} ms`
        warnOfLoss(name, session, hasExited ? 'its process has ended' : silence)
        sessions.delete(name)
        connection?.close(closeCodes.silent, `Nothing was heard of the worker for ${leaseMs} ms.`)
      },
    }
    return session
  }

  function requireTaken({ name, incarnation, protocol, agentHash: hash, agentParts: parts }: WorkerHello): void {
    if (protocol !== workerProtocol) {
      const message = `Worker "${name}" speaks protocol ${protocol}, its coordinator ${workerProtocol}; install the same version of aworld-train on both.`
      throw new TrainError('WORKER_PROTOCOL', message)
    }
    if (hash !== agent.hash) {
      const message = `Worker "${name}" has another agent than its coordinator: ${firstDifference(agent, { hash, parts })}. Give the worker the same project and packages.`
      throw new TrainError('WORKER_AGENT', message)
    }
    const other = sessions.get(name)
    // A machine that is gone stays silent. A restart of its worker need not wait for the end of the lease.
    const isHeard = other?.connection && clock.now() - other.connection.heardAt() < deadMs
    if (isHeard && other.incarnation !== incarnation) {
      throw new TrainError('WORKER_NAME', `Another worker named "${name}" is connected; start this one with another --name.`)
    }
  }

  function greet(hello: WorkerHello, connection: Connection): Session {
    const { name, incarnation, slots, holding, draining: isDraining } = hello
    const before = sessions.get(name)
    const isSame = before?.incarnation === incarnation
    const session = isSame ? before : createSession(hello)
    if (before && !isSame) warnOfLoss(name, before, 'it has started again')
    const replaced = before?.connection
    if (before) before.connection = null
    session.connection = connection
    sessions.set(name, session)
    // The worker lives on in the new connection.
    replaced?.close(closeCodes.replaced, 'The same worker has connected again.')
    connection.send({ type: 'welcome', protocol: workerProtocol, beatMs, leaseMs, maxFrameBytes, environment })
    workers!.hello({ name, incarnation, isDraining, slots, holding, leaseMs, graceMs, stopMs, link: session })
    return session
  }

  function serve(session: Session, name: string, connection: Connection, message: WorkerMessage): void {
    if (message.type === 'hello') {
      connection.unreadable('A worker says hello once, before everything else.')
      return
    }
    if (message.type === 'beat') {
      if (message.draining) workers!.drain(name)
      session.lastCalls = message.openCalls
      workers!.beat(name, message.holding)
      return
    }
    const { results } = session
    const { key, attempt, outcome } = message
    const resolve = results.get(idOf(message))
    results.delete(idOf(message))
    if (resolve) resolve(outcome)
    else workers!.result(name, { key, attempt })
  }

  function accept(socket: FrameSocket): void {
    let session: Session | null = null
    let name = ''
    const framed = createFramedSocket({
      socket,
      clock,
      messages: WorkerMessage,
      peer: 'worker',
      codes: { lost: 'WORKER_LOST', invalid: 'WORKER_INVALID' },
      limits: { maxBufferedBytes, deadMs: Number.POSITIVE_INFINITY },
      onWarning: warn,
      onFrame({ message }) {
        if (session) return serve(session, name, connection, message)
        if (message.type !== 'hello') return connection.unreadable(`A worker says hello first, not ${message.type}.`)
        endGreeting()
        try {
          requireTaken(message)
        } catch (error) {
          return connection.reject(error as TrainError)
        }
        name = message.name
        session = greet(message, connection)
      },
      onClose(code) {
        endGreeting()
        connections.delete(connection)
        if (session?.connection !== connection) return
        session.connection = null
        if (code === closeCodes.normal) workers!.leave(name)
        else workers!.disconnect(name)
      },
    })
    const connection: Connection = {
      ...framed,
      send: framed.send,
      reject({ code, message, retryable }) {
        warn(code, message)
        framed.send({ type: 'rejected', error: { code, message, retryable } })
        framed.close(closeCodes.rejected, code)
      },
    }
    connections.add(connection)
    const endGreeting = clock.after(limits.helloMs, () => {
      const message = `A worker has not said hello in ${limits.helloMs} ms; its connection was closed.`
      warn('WORKER_INVALID', message)
      // No refusal: its process may have stood still, and connects again.
      framed.close(closeCodes.silent, message)
    })
  }

  function disconnect(): void {
    for (const connection of connections) connection.close(closeCodes.goingAway, 'The coordinator stops.')
  }

  return {
    attach(attached) {
      workers = attached
      if (failure) workers.fail(failure)
    },
    upgrade(request, socket, head) {
      if (!workers || connections.size >= limits.maxConnections) {
        socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
        return
      }
      webSockets.handleUpgrade(request, socket, head, accept)
    },
    accept,
    sendFile: announced.answer,
    exit(name) {
      const session = sessions.get(name)
      if (session) session.hasExited = true
      workers?.exit(name)
      return session !== undefined
    },
    fail(error) {
      failure ??= error
      workers?.fail(failure)
    },
    drain() {
      for (const { connection } of sessions.values()) connection?.send({ type: 'drain' })
    },
    disconnect,
    close() {
      endBeats()
      disconnect()
      workers = null
      webSockets.close()
    },
  }
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : 'its coordinator cancelled it'
}
