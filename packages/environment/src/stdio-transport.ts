import { isUtf8 } from 'node:buffer'
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { createLineReader, type OversizedLine } from './line-reader.ts'
import { killTree, type ProcessGuard } from './process-guard.ts'
import { invalidAnswerCode } from './tool-result.ts'

export interface StdioTransportOptions {
  /** Starts the process with pipes for input and output. Outside Windows it leads a process group. */
  readonly spawn: () => ChildProcess
  /** Longest message that is read. A longer one fails only its call. */
  readonly maxMessageBytes: number
  readonly graceMs: number
  readonly guard: ProcessGuard
}

const stderrTailBytes = 2048

/** A program's last words without the frames of a stack, which Node and Python indent. */
function withoutFrames(text: string): string {
  const lines = text.split('\n')
  return lines.filter((line, index) => index === 0 || /^\S/.test(line)).join('\n')
}

/**
 * The SDK's stdio framing over a process of our own, which leads a process group, so that ending it ends all that it started. An answer
 * that is too long or not UTF-8 becomes an error of its call; the connection goes on.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  /** The SDK recognises a stdio transport by this and `pid`. */
  readonly stderr: null = null
  readonly #options: StdioTransportOptions
  readonly #exited = Promise.withResolvers<void>()
  #child: ChildProcess | null = null
  #drained: Promise<void> | null = null
  #stderrTail = Buffer.alloc(0)
  #wasStarted = false
  #ending = 'is not started'

  constructor(options: StdioTransportOptions) {
    this.#options = options
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  /** Whether a process was started at all. */
  get wasStarted(): boolean {
    return this.#wasStarted
  }

  /** The end of the process in words, with the last of its stderr, stacks left out. */
  describeEnd(): string {
    const written = withoutFrames(this.#stderrTail.toString().trim())
    return `it ${this.#ending}${written ? `; it wrote to stderr:\n${written}` : '; it wrote nothing to stderr'}`
  }

  async start(): Promise<void> {
    const { spawn, guard, maxMessageBytes } = this.#options
    const started = Promise.withResolvers<void>()
    const child = spawn()
    const { stdin, stdout, stderr } = child as ChildProcessWithoutNullStreams
    // The process runs before it is announced, and may have to be ended by then.
    if (child.pid !== undefined) {
      this.#child = child
      this.#wasStarted = true
      this.#ending = 'still runs'
      guard.addProcess(child.pid)
    }
    child.once('error', (error) => {
      this.#ending = `could not be started (${error.message})`
      this.#exited.resolve()
      started.reject(error)
    })
    child.once('spawn', started.resolve)
    child.once('exit', (code, signal) => {
      this.#ending = signal ? `was ended by ${signal}` : `exited with code ${code}`
      this.#child = null
      // Processes that it started must not outlive it, nor hold its pipes open.
      killTree(child.pid!, 'SIGKILL')
      guard.removeProcess(child.pid!)
      const closed = new Promise((resolve) => child.once('close', resolve))
      void Promise.race([closed, delay(500, undefined, { ref: false })]).then(() => {
        for (const stream of child.stdio) stream?.destroy()
        this.#exited.resolve()
        this.onclose?.()
      })
    })
    const onLine = (line: Buffer) => this.#onLine(line)
    stdout.on('data', createLineReader({ maxBytes: maxMessageBytes, onLine, onOversized: (line) => this.#onOversized(line) }))
    stderr.on('data', (chunk: Buffer) => {
      this.#stderrTail = Buffer.concat([this.#stderrTail, chunk.subarray(-stderrTailBytes)]).subarray(-stderrTailBytes)
    })
    for (const stream of [stdin, stdout, stderr]) stream.on('error', (error) => this.onerror?.(error))
    await started.promise
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (!stdin?.writable) throw new Error('The process has gone.')
    if (stdin.write(`${JSON.stringify(message)}\n`)) return
    this.#drained ??= new Promise((resolve) => {
      const done = () => {
        this.#drained = null
        stdin.off('drain', done).off('close', done)
        resolve()
      }
      stdin.once('drain', done).once('close', done)
    })
    await this.#drained
  }

  /** Ends the process politely, then by force. Resolves when it and all that it started are gone. */
  async close(): Promise<void> {
    const child = this.#child
    if (child) {
      const { graceMs } = this.#options
      child.stdin?.end()
      if (!(await this.#exits(graceMs))) killTree(child.pid!, 'SIGTERM')
      if (!(await this.#exits(graceMs / 2))) killTree(child.pid!, 'SIGKILL')
    }
    if (this.#ending !== 'is not started') await this.#exited.promise
  }

  /** Ends the process and all it started by force. */
  async kill(): Promise<void> {
    if (this.#child) killTree(this.#child.pid!, 'SIGKILL')
    if (this.#ending !== 'is not started') await this.#exited.promise
  }

  async #exits(withinMs: number): Promise<boolean> {
    const deadline = new AbortController()
    const late = delay(withinMs, false, { signal: deadline.signal }).catch(() => false)
    const exited = await Promise.race([this.#exited.promise.then(() => true), late])
    deadline.abort()
    return exited
  }

  #onLine(line: Buffer): void {
    let message: JSONRPCMessage
    try {
      message = JSON.parse(line.toString())
    } catch (cause) {
      // Servers that print to stdout are common. Only a line that looks like a message is reported.
      if (line[0] === 0x7b) this.onerror?.(new Error('The server sent a line that is not JSON.', { cause }))
      return
    }
    if (!isUtf8(line) && 'id' in message) this.#refuse(message.id, 'is not valid UTF-8')
    else this.onmessage?.(message)
  }

  #onOversized({ bytes, head, tail }: OversizedLine): void {
    // Both places are at the top level of the object: the first key, or the last before the closing brace.
    const id = /^\{(?:"jsonrpc":\s*"2\.0",\s*)?"id":\s*(\d+)/.exec(head) ?? /,\s*"id":\s*(\d+)\s*\}\s*$/.exec(tail)
    const problem = `is ${bytes} bytes long; at most ${this.#options.maxMessageBytes} are read`
    if (id) this.#refuse(Number(id[1]), problem)
    else {
      this.onerror?.(new Error(`A message of the server ${problem}.`))
      void this.kill()
    }
  }

  #refuse(id: string | number | undefined, problem: string): void {
    if (id === undefined) return
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: invalidAnswerCode, message: `The answer ${problem}.` } })
  }
}
