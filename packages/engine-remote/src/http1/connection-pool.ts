import { TrainError } from '@aworld-train/protocol'
import { type CallHandler, Connection, type ConnectionOptions } from './connection.ts'

export interface ConnectionPoolOptions {
  /** Scheme, host and port; a path is not looked at. */
  readonly url: string
  readonly connectTimeoutMs: number
  /** How long a connection that nobody uses is kept; a server that names a shorter time is heeded, a second before it ends. */
  readonly keepAliveMs: number
  /** A server closed a connection that it had not said it would. */
  readonly onServerClosed?: () => void
}

export interface PoolRequest {
  readonly path: string
  /** Names and values by turns; the same array for calls that have the same ones. */
  readonly headers: readonly string[]
  /** Further lines, by name, that other calls do not have. */
  readonly own?: Readonly<Record<string, string>> | undefined
  readonly body: readonly Uint8Array[]
  /** A new connection, since one that was there has failed. */
  readonly fresh?: boolean
}

/** A request under way. */
export interface PoolCall {
  /** Closes its connection; nothing more is heard. */
  abort(): void
  resume(): void
}

const readBytes = 64 * 1024
const slabBytes = 64 * 1024
/** What is at least as large lies in memory of its own, which can be given back when it has been used. */
const ownBytes = 16 * 1024

/**
 * HTTP/1.1 connections to one server. Each POST gets one that is free, the one used last, or a new one: how many there are is
 * for the caller to bound. Nothing is sent twice, and nothing waits.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions
  readonly #connectionOptions: ConnectionOptions
  readonly #connections = new Set<Connection>()
  /** Those that were free longest come first. */
  readonly #free: Connection[] = []
  readonly #heads = new Map<readonly string[], Map<string, string>>()
  #slab = Buffer.allocUnsafeSlow(slabBytes)
  #slabAt = 0
  #timer: NodeJS.Timeout | null = null
  #closed: Error | null = null
  #emptied: (() => void) | null = null

  constructor(options: ConnectionPoolOptions) {
    this.#options = options
    this.#connectionOptions = {
      origin: new URL(options.url),
      connectTimeoutMs: options.connectTimeoutMs,
      readInto: Buffer.allocUnsafeSlow(readBytes),
      keep: (piece) => this.#keep(piece),
    }
  }

  /** Connections, free ones included. */
  get size(): number {
    return this.#connections.size
  }

  /** CONFIG_INVALID where a header holds what no header may. */
  post({ path, headers, own, body, fresh = false }: PoolRequest, handler: CallHandler): PoolCall {
    let length = 0
    for (const piece of body) length += piece.length
    const request = { head: `${this.#headOf(path, headers)}${length}\r\n${own ? writeLines(Object.entries(own)) : ''}\r\n`, body, length }
    if (this.#closed) return refuse(handler, this.#closed)
    for (let free = fresh ? undefined : this.#free.pop(); free; free = this.#free.pop()) {
      if (!free.isOpen) continue
      free.serve(request, handler)
      return free
    }
    const made = new Connection(request, handler, this.#connectionOptions, this)
    this.#connections.add(made)
    return made
  }

  onFree(connection: Connection, keepAliveSeconds: number | null): void {
    const { keepAliveMs } = this.#options
    connection.freeForMs = keepAliveSeconds === null ? keepAliveMs : Math.min(keepAliveMs, keepAliveSeconds * 1000 - 1000)
    if (this.#closed || connection.freeForMs <= 0) {
      connection.close()
      return
    }
    connection.freeSince = performance.now()
    connection.free()
    this.#free.push(connection)
    this.#timer ??= setTimeout(() => this.#closeIdle(), connection.freeForMs).unref()
  }

  onClose(connection: Connection, byServer: boolean): void {
    this.#connections.delete(connection)
    const index = this.#free.indexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    if (this.#connections.size === 0) this.#emptied?.()
    if (byServer) this.#options.onServerClosed?.()
  }

  /** Calls under way end with `reason`, and so do those that come later; resolves when all connections are closed. */
  async close(reason: Error): Promise<void> {
    this.#closed ??= reason
    if (this.#timer) clearTimeout(this.#timer)
    if (this.#connections.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#emptied = resolve
    for (const connection of this.#connections) connection.close(reason)
    await promise
  }

  #closeIdle(): void {
    this.#timer = null
    const now = performance.now()
    let next = Number.POSITIVE_INFINITY
    for (const connection of [...this.#free]) {
      const left = connection.freeSince + connection.freeForMs - now
      if (left > 0) next = Math.min(next, left)
      else {
        this.#free.splice(this.#free.indexOf(connection), 1)
        connection.close()
      }
    }
    if (next < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#closeIdle(), Math.max(next, 100)).unref()
  }

  #keep(piece: Buffer): Buffer {
    const { length } = piece
    if (length >= ownBytes) {
      const own = Buffer.allocUnsafeSlow(length)
      own.set(piece)
      return own
    }
    if (length > slabBytes - this.#slabAt) {
      this.#slab = Buffer.allocUnsafeSlow(slabBytes)
      this.#slabAt = 0
    }
    const from = this.#slabAt
    this.#slabAt = from + length
    this.#slab.set(piece, from)
    return this.#slab.subarray(from, from + length)
  }

  /** Everything before the length of the body. */
  #headOf(path: string, headers: readonly string[]): string {
    const heads = this.#heads.get(headers) ?? new Map<string, string>()
    let head = heads.get(path)
    if (head === undefined) {
      head = writeHead(path, this.#connectionOptions.origin.host, headers)
      heads.set(path, head)
      this.#heads.set(headers, heads)
    }
    return head
  }
}

/** Not at once: who calls does not have the call yet. */
function refuse(handler: CallHandler, error: Error): PoolCall {
  let isHeard = true
  queueMicrotask(() => {
    if (isHeard) handler.onError(error, false)
  })
  return {
    abort() {
      isHeard = false
    },
    resume() {},
  }
}

/** RFC 9110, section 5.5: what a value may hold. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

function writeLines(headers: Iterable<readonly [string, string]>): string {
  let lines = ''
  for (const [name, value] of headers) {
    if (!fieldValue.test(value))
      throw invalid(`The value of the header "${name}" holds a character that no header may, such as a line break`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

function writeHead(path: string, host: string, headers: readonly string[]): string {
  if (/[^\x21-\x7e]/.test(path)) throw invalid(`The path "${path}" holds a character that no address may`)
  const pairs = Array.from({ length: headers.length / 2 }, (_, index) => [headers[2 * index]!, headers[2 * index + 1]!] as const)
  return `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n${writeLines(pairs)}content-length: `
}

const invalid = (what: string) => new TrainError('CONFIG_INVALID', `${what}; mend the configuration of the server.`)
