import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ChannelHello, channelCloseCodes, channelProtocol, TrainError, toTrainError } from '@aworld-train/core'
import { type WebSocket, WebSocketServer } from 'ws'
import { type ChannelConnection, type ClientFrame, createChannelConnection } from './channel-connection.ts'
import { defaultChannelLimits } from './channel-limits.ts'
import { createChannelTally } from './channel-tally.ts'
import type { ChannelOutcome, ChannelServer, ChannelServerOptions } from './channel-types.ts'
import { createClientRuns } from './client-runs.ts'
import { type ClientSession, createSubmissions } from './submissions.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

const nameOf = ({ run, incarnation, worker }: ChannelHello) => JSON.stringify([run, incarnation, worker])

/** Progress of a connection's greeting. */
interface Greeting {
  phase: 'hello' | 'files' | 'ready'
  hello: ChannelHello | null
  renderedIds: Int32Array
  session: ClientSession | null
  timer: NodeJS.Timeout
}

/** Serves trainer clients over WebSockets: greets them, takes what they submit, and sends their engine's answers to `engine`. */
export function createChannelServer(options: ChannelServerOptions): ChannelServer {
  const { service, engine, store, onWarning, rows = 'all', reward = 'service', rolloutTimeoutMs = null, graceMs = 30_000 } = options
  const limits = { ...defaultChannelLimits, ...options.limits }
  const tally = createChannelTally()
  const onOutcome = (outcome: ChannelOutcome) => {
    tally.ended(outcome)
    options.onOutcome?.(outcome)
  }
  const submissions = createSubmissions({ ...options, onOutcome, rows, reward, rolloutTimeoutMs, graceMs })
  const runs = createClientRuns(store)
  const sessions = new Map<string, ClientSession>()
  const connections = new Set<ChannelConnection>()
  const webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxFrameBytes,
    perMessageDeflate: false,
    clientTracking: false,
  })
  let closed = false

  let beaten = performance.now()
  const beats = setInterval(() => {
    const now = performance.now()
    // Messages that arrived while this process stood still have not been read yet, so no connection counts as silent.
    const paused = now - beaten > 2 * limits.pingMs
    beaten = now
    for (const connection of connections) connection.beat(paused ? 0 : now)
  }, limits.pingMs)
  beats.unref()

  const warn = (code: string, message: string) => onWarning?.({ code, message })

  const unlisten = service.listen((event) => {
    if (event.type === 'rollout-start') submissions.started(event.rollout)
  })

  function requireWelcome({ protocol, run, incarnation, framework }: ChannelHello): void {
    if (protocol !== channelProtocol) {
      const message = `The bridge of ${framework.name} ${framework.version} speaks protocol ${protocol} of the channel, the rollout service ${channelProtocol}; install the same version of both.`
      throw new TrainError('CHANNEL_PROTOCOL', message)
    }
    if (runs.isSuperseded(run, incarnation)) throw superseded(run, incarnation)
  }

  function superseded(run: string, incarnation: string): TrainError {
    return new TrainError('CHANNEL_SUPERSEDED', `Start "${incarnation}" of run "${run}" was superseded by a newer one; end it.`)
  }

  /** Whether other trainer clients use the model: all connected ones but older starts of the same run. */
  function isBound({ run, incarnation }: ChannelHello): boolean {
    return Array.from(sessions.values(), (session) => session.hello).some((other) => other.run !== run || other.incarnation === incarnation)
  }

  /** A newer start of a run ends the older ones: their rollouts were sampled by weights that are gone. */
  async function enter({ run, incarnation }: ChannelHello): Promise<void> {
    const takesOver = await runs.enter(run, incarnation)
    for (const [name, session] of sessions) {
      if (session.hello.run !== run || session.hello.incarnation === incarnation) continue
      sessions.delete(name)
      submissions.supersede(session)
      session.connection?.reject(superseded(run, session.hello.incarnation))
    }
    if (takesOver) engine.link.weights(0, { restart: true })
  }

  function join(hello: ChannelHello, connection: ChannelConnection): ClientSession {
    const existing = sessions.get(nameOf(hello))
    const before = existing?.connection
    if (existing) tally.reconnected()
    const session = existing ?? { hello, connection: null }
    session.connection = connection
    sessions.set(nameOf(hello), session)
    // A trainer client may notice that its connection is lost, and open another, before this side does.
    before?.close(channelCloseCodes.replaced, 'The same worker has connected again.')
    engine.link.join(connection)
    return session
  }

  async function ready(greeting: Greeting, connection: ChannelConnection): Promise<void> {
    const hello = greeting.hello!
    await engine.link.check(hello, greeting.renderedIds, () => isBound(hello))
    requireWelcome(hello)
    await enter(hello)
    requireWelcome(hello)
    if (!connections.has(connection)) return
    greeting.phase = 'ready'
    greeting.session = join(hello, connection)
    connection.send({ type: 'ready' })
  }

  async function greet(greeting: Greeting, connection: ChannelConnection, { message, arrays }: ClientFrame): Promise<void> {
    if (greeting.phase === 'hello' && message.type === 'hello') {
      const { renderedIds } = arrays
      if (!(renderedIds instanceof Int32Array)) {
        connection.unreadable('A hello comes with array "renderedIds" of int32.')
        return
      }
      clearTimeout(greeting.timer)
      greeting.hello = message
      greeting.renderedIds = renderedIds
      requireWelcome(message)
      const needFiles = await engine.link.needsFiles(message, isBound(message))
      const settings = { rolloutTimeoutMs, reward, rowSelection: rows }
      const { pingMs } = limits
      connection.send({ type: 'welcome', protocol: channelProtocol, service: version, needFiles, graceMs, pingMs, settings })
      if (!needFiles) return await ready(greeting, connection)
      greeting.phase = 'files'
      expect(greeting, connection, limits.filesMs, 'its tokenizer files')
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
      await engine.link.keepFiles(greeting.hello!, files)
      await ready(greeting, connection)
    } else connection.unreadable(`A trainer says ${greeting.phase} first, not ${message.type}.`)
  }

  /** Rejects a trainer client that is silent at the start. */
  function expect(greeting: Greeting, connection: ChannelConnection, ms: number, what: string): void {
    clearTimeout(greeting.timer)
    greeting.timer = setTimeout(() => {
      reject(connection, new TrainError('CHANNEL_INVALID', `The trainer has not sent ${what} in ${ms} ms.`))
    }, ms)
  }

  function reject(connection: ChannelConnection, error: TrainError): void {
    tally.rejected()
    warn(error.code, error.message)
    connection.reject(error)
  }

  function serve(session: ClientSession, connection: ChannelConnection, { message, arrays }: ClientFrame): void {
    switch (message.type) {
      case 'generated':
      case 'generate-failed':
        engine.link.answer(connection, message, arrays)
        return
      case 'submit':
        submissions.submit(session, message)
        return
      case 'cancel':
        submissions.cancel(session, message.key, message.reason)
        return
      case 'weights':
        engine.link.weights(message.version)
        return
      case 'accepted':
        submissions.report(message.key, 'accepted')
        return
      case 'refused':
        submissions.report(message.key, 'refused', { error: message.error })
        return
      default:
        connection.unreadable(`A trainer says ${message.type} once, before everything else.`)
    }
  }

  function leave({ session, timer }: Greeting, connection: ChannelConnection): void {
    clearTimeout(timer)
    connections.delete(connection)
    engine.link.disconnect(connection)
    if (submissions.leave(connection) > 0) tally.lost()
    if (session?.connection !== connection) return
    session.connection = null
    if (!submissions.has(session)) sessions.delete(nameOf(session.hello))
  }

  function accept(socket: WebSocket): void {
    const greeting: Greeting = { phase: 'hello', hello: null, renderedIds: new Int32Array(), session: null, timer: setTimeout(() => {}) }
    const connection = createChannelConnection({
      socket,
      limits,
      onWarning: warn,
      tally,
      onFrame(frame) {
        if (greeting.session) return serve(greeting.session, connection, frame)
        return greet(greeting, connection, frame).catch((cause) => reject(connection, toTrainError(cause, 'GATEWAY_FAILED')))
      },
      onClose: () => leave(greeting, connection),
    })
    connections.add(connection)
    expect(greeting, connection, limits.helloMs, 'a hello')
  }

  function disconnect(): void {
    for (const connection of connections) connection.close(1001, 'The rollout service stops.')
  }

  return {
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer) {
      if (closed || connections.size >= limits.maxConnections) {
        socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
        return
      }
      webSockets.handleUpgrade(request, socket, head, accept)
    },
    counts: () => ({
      connections: connections.size,
      workers: [...sessions.values()].filter(({ connection }) => connection !== null).length,
      open: submissions.open(),
      calls: engine.link.calls(),
      ...tally.totals,
    }),
    disconnect,
    async close() {
      clearInterval(beats)
      unlisten()
      closed = true
      disconnect()
      await submissions.close()
      webSockets.close()
    },
  }
}
