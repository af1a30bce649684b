import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ChannelHello, type ChannelWelcome, channelCloseCodes, channelProtocol, TrainError, toTrainError } from '@aworld-train/core'
import { type WebSocket, WebSocketServer } from 'ws'
import { type ChannelConnection, type ClientFrame, createChannelConnection } from './channel-connection.ts'
import { type ChannelServerLimits, defaultChannelLimits } from './channel-limits.ts'
import { type ChannelTally, createChannelTally } from './channel-tally.ts'
import type { ChannelCounts, ChannelServer, ChannelServerOptions, EngineLink } from './channel-types.ts'
import { type ClientRuns, createClientRuns } from './client-runs.ts'
import { type ClientSession, ClientSessions } from './client-sessions.ts'
import { createSubmissions, type Submissions } from './submissions.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

/** Progress of a connection's greeting. */
interface Greeting {
  phase: 'hello' | 'files' | 'ready'
  hello: ChannelHello | null
  renderedIds: Int32Array
  session: ClientSession | null
  timer: NodeJS.Timeout
}

/** Serves trainer clients over WebSockets: greets them, takes what they submit, and sends their engine's answers to `engine`. */
export const createChannelServer = (options: ChannelServerOptions): ChannelServer => new SocketChannel(options)

class SocketChannel implements ChannelServer {
  readonly #link: EngineLink
  readonly #welcome: Pick<ChannelWelcome, 'graceMs' | 'pingMs' | 'settings'>
  readonly #limits: ChannelServerLimits
  readonly #warn: (code: string, message: string) => void
  readonly #submissions: Submissions
  readonly #runs: ClientRuns
  readonly #tally: ChannelTally = createChannelTally()
  readonly #sessions = new ClientSessions()
  readonly #connections = new Set<ChannelConnection>()
  readonly #webSockets: WebSocketServer
  readonly #beats: NodeJS.Timeout
  readonly #unlisten: () => void
  #beatenAt = performance.now()
  #isClosed = false

  constructor(options: ChannelServerOptions) {
    const { service, engine, store, rows = 'all', reward = 'service', rolloutTimeoutMs = null, graceMs = 30_000 } = options
    const limits = { ...defaultChannelLimits, ...options.limits }
    this.#link = engine.link
    this.#limits = limits
    this.#welcome = { graceMs, pingMs: limits.pingMs, settings: { rolloutTimeoutMs, reward, rowSelection: rows } }
    this.#warn = (code, message) => options.onWarning?.({ code, message })
    this.#submissions = createSubmissions({
      ...options,
      rows,
      reward,
      rolloutTimeoutMs,
      graceMs,
      onOutcome: (outcome) => {
        this.#tally.ended(outcome)
        options.onOutcome?.(outcome)
      },
    })
    this.#runs = createClientRuns(store)
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: limits.maxFrameBytes,
      perMessageDeflate: false,
      clientTracking: false,
    })
    this.#beats = setInterval(() => this.#beat(), limits.pingMs)
    this.#beats.unref()
    this.#unlisten = service.listen((event) => {
      if (event.type === 'rollout-start') this.#submissions.started(event.rollout)
    })
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#isClosed || this.#connections.size >= this.#limits.maxConnections) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    this.#webSockets.handleUpgrade(request, socket, head, (each) => this.#accept(each))
  }

  counts(): ChannelCounts {
    return {
      connections: this.#connections.size,
      workers: this.#sessions.connected(),
      open: this.#submissions.open(),
      calls: this.#link.calls(),
      ...this.#tally.totals,
    }
  }

  disconnect(): void {
    for (const connection of this.#connections) connection.close(1001, 'The rollout service stops.')
  }

  async close(): Promise<void> {
    clearInterval(this.#beats)
    this.#unlisten()
    this.#isClosed = true
    this.disconnect()
    await this.#submissions.close()
    this.#webSockets.close()
  }

  #beat(): void {
    const now = performance.now()
    // Messages that arrived while this process stood still have not been read yet, so no connection counts as silent.
    const paused = now - this.#beatenAt > 2 * this.#limits.pingMs
    this.#beatenAt = now
    for (const connection of this.#connections) connection.beat(paused ? 0 : now)
  }

  #accept(socket: WebSocket): void {
    const greeting: Greeting = { phase: 'hello', hello: null, renderedIds: new Int32Array(), session: null, timer: setTimeout(() => {}) }
    const connection = createChannelConnection({
      socket,
      limits: this.#limits,
      onWarning: this.#warn,
      tally: this.#tally,
      onFrame: (frame) => {
        if (greeting.session) return this.#serve(greeting.session, connection, frame)
        return this.#greet(greeting, connection, frame).catch((cause) => this.#reject(connection, toTrainError(cause, 'GATEWAY_FAILED')))
      },
      onClose: () => this.#leave(greeting, connection),
    })
    this.#connections.add(connection)
    this.#expect(greeting, connection, this.#limits.helloMs, 'a hello')
  }

  async #greet(greeting: Greeting, connection: ChannelConnection, { message, arrays }: ClientFrame): Promise<void> {
    if (greeting.phase === 'hello' && message.type === 'hello') {
      const { renderedIds } = arrays
      if (!(renderedIds instanceof Int32Array)) {
        connection.unreadable('A hello comes with array "renderedIds" of int32.')
        return
      }
      clearTimeout(greeting.timer)
      greeting.hello = message
      greeting.renderedIds = renderedIds
      this.#requireWelcome(message)
      const needFiles = await this.#link.needsFiles(message, this.#sessions.isBound(message))
      connection.send({ type: 'welcome', protocol: channelProtocol, service: version, needFiles, ...this.#welcome })
      if (!needFiles) return await this.#ready(greeting, connection)
      greeting.phase = 'files'
      this.#expect(greeting, connection, this.#limits.filesMs, 'its tokenizer files')
    } else if (greeting.phase === 'files' && message.type === 'files') {
      clearTimeout(greeting.timer)
      const files = new Map<string, Uint8Array>()
      for (const { name } of message.files) {
        const bytes = arrays[name]
        if (!(bytes instanceof Uint8Array)) {
          connection.unreadable(`The files lack array "${name}" of uint8.`)
          return
        }
        files.set(name, bytes)
      }
      await this.#link.keepFiles(greeting.hello!, files)
      await this.#ready(greeting, connection)
    } else connection.unreadable(`A trainer says ${greeting.phase} first, not ${message.type}.`)
  }

  #requireWelcome({ protocol, run, incarnation, framework }: ChannelHello): void {
    if (protocol !== channelProtocol) {
      const message = `The bridge of ${framework.name} ${framework.version} speaks protocol ${protocol} of the channel, the rollout service ${channelProtocol}; install the same version of both.`
      throw new TrainError('CHANNEL_PROTOCOL', message)
    }
    if (this.#runs.isSuperseded(run, incarnation)) throw superseded(run, incarnation)
  }

  async #ready(greeting: Greeting, connection: ChannelConnection): Promise<void> {
    const hello = greeting.hello!
    await this.#link.check(hello, greeting.renderedIds, () => this.#sessions.isBound(hello))
    this.#requireWelcome(hello)
    await this.#enter(hello)
    this.#requireWelcome(hello)
    if (!this.#connections.has(connection)) return
    greeting.phase = 'ready'
    greeting.session = this.#join(hello, connection)
    connection.send({ type: 'ready' })
  }

  /** A newer start of a run ends the older ones: their rollouts were sampled by weights that are gone. */
  async #enter(hello: ChannelHello): Promise<void> {
    const { run, incarnation } = hello
    const takesOver = await this.#runs.enter(run, incarnation)
    for (const session of this.#sessions.removeOtherStarts(hello)) {
      this.#submissions.supersede(session)
      session.connection?.reject(superseded(run, session.hello.incarnation))
    }
    if (takesOver) this.#link.weights(0, { restart: true })
  }

  #join(hello: ChannelHello, connection: ChannelConnection): ClientSession {
    const { session, isBack, replaced } = this.#sessions.join(hello, connection)
    if (isBack) this.#tally.reconnected()
    // A trainer client may notice that its connection is lost, and open another, before this side does.
    replaced?.close(channelCloseCodes.replaced, 'The same worker has connected again.')
    this.#link.join(connection)
    return session
  }

  /** Rejects a trainer client that is silent at the start. */
  #expect(greeting: Greeting, connection: ChannelConnection, ms: number, what: string): void {
    clearTimeout(greeting.timer)
    greeting.timer = setTimeout(() => {
      this.#reject(connection, new TrainError('CHANNEL_INVALID', `The trainer has not sent ${what} in ${ms} ms.`))
    }, ms)
  }

  #reject(connection: ChannelConnection, error: TrainError): void {
    this.#tally.rejected()
    this.#warn(error.code, error.message)
    connection.reject(error)
  }

  #serve(session: ClientSession, connection: ChannelConnection, { message, arrays }: ClientFrame): void {
    switch (message.type) {
      case 'generated':
      case 'generate-failed':
        this.#link.answer(connection, message, arrays)
        return
      case 'submit':
        this.#submissions.submit(session, message)
        return
      case 'cancel':
        this.#submissions.cancel(session, message.key, message.reason)
        return
      case 'weights':
        this.#link.weights(message.version)
        return
      case 'accepted':
        this.#submissions.report(message.key, 'accepted')
        return
      case 'refused':
        this.#submissions.report(message.key, 'refused', { error: message.error })
        return
      default:
        connection.unreadable(`A trainer says ${message.type} once, before everything else.`)
    }
  }

  #leave({ session, timer }: Greeting, connection: ChannelConnection): void {
    clearTimeout(timer)
    this.#connections.delete(connection)
    if (this.#submissions.leave(connection) > 0) this.#tally.lost()
    if (session?.connection !== connection) return
    session.connection = null
    if (!this.#submissions.has(session)) this.#sessions.remove(session)
  }
}

function superseded(run: string, incarnation: string): TrainError {
  return new TrainError('CHANNEL_SUPERSEDED', `Start "${incarnation}" of run "${run}" was superseded by a newer one; end it.`)
}
