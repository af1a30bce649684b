import { PassThrough, type Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { deserialize, serialize } from 'node:v8'
import type { Worker } from 'node:worker_threads'
import {
  type ByteStream,
  type CommandResult,
  type LongProgram,
  orAborted,
  type Program,
  readBytes,
  type Shell,
  ToolError,
  TrainError,
  type Workspace,
  type WorkspaceFile,
  type WorkspaceLimits,
} from '@aworld-train/core'
import { needsPrograms } from '../needs-programs.ts'
import type { CommandOutcome, PackedEntry, WorkspaceMessage, WorkspaceReply, WorkspaceRequest } from './messages.ts'
import type { WorkspaceThreads } from './workspace-threads.ts'

/** How long a command may take to end after it was told to. If it takes longer, its workspace dies with it. */
const stopMs = 10_000

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The workspace of a rollout, in a thread of its own. */
export class SimulatedWorkspace implements Workspace {
  readonly #thread: Worker
  readonly #threads: WorkspaceThreads
  readonly #memoryBytes: number
  readonly #onClose: () => void
  readonly #pending = new Map<number, Pending>()
  #nextId = 0
  #nextShell = 0
  /** The reason why it takes no more requests. */
  #ended: Error | null = null

  readonly #onMessage = (reply: WorkspaceReply) => this.#settle(reply)
  readonly #onError = (error: Error) => this.#end(died(error.message, error))
  readonly #onExit = (code: number) => this.#end(died(`its thread ended with code ${code}`))

  constructor({ memoryBytes, diskBytes, outputBytes }: WorkspaceLimits, threads: WorkspaceThreads, onClose: () => void) {
    this.#onClose = onClose
    this.#threads = threads
    this.#memoryBytes = memoryBytes
    this.#thread = threads.take(memoryBytes)
    this.#thread.on('message', this.#onMessage).on('error', this.#onError).on('exit', this.#onExit)
    this.#thread.postMessage({ begin: { diskBytes, outputBytes } } satisfies WorkspaceMessage)
  }

  async run({ command, stdin = '', timeoutMs, readOnly = false }: Program, signal: AbortSignal): Promise<CommandResult> {
    signal.throwIfAborted()
    return orAborted(
      this.#command((stop) => ({ kind: 'run', command, stdin, readOnly, stop }), timeoutMs, signal),
      signal,
    )
  }

  async program({ command }: LongProgram): Promise<never> {
    throw new ToolError(needsPrograms(command[0]))
  }

  async listen(port: number): Promise<never> {
    throw new ToolError(needsPrograms(`A program that uses port ${port}`))
  }

  async shell(signal: AbortSignal): Promise<Shell> {
    signal.throwIfAborted()
    this.#check()
    const shell = this.#nextShell++
    let last: Promise<unknown> = Promise.resolve()
    return {
      execute: async (command, timeoutMs, commandSignal) => {
        commandSignal.throwIfAborted()
        const result = last.then(() => this.#command((stop) => ({ kind: 'execute', shell, command, stop }), timeoutMs, commandSignal))
        last = result.catch(() => {})
        return orAborted(result, commandSignal)
      },
      close: async () => {
        if (!this.#ended) await this.#request({ kind: 'close-shell', shell })
      },
    }
  }

  async put(path: string, bytes: Uint8Array | ByteStream, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await this.#request({ kind: 'put', path, bytes: await orAborted(readBytes(bytes), signal) })
  }

  async get(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    signal.throwIfAborted()
    return Buffer.from((await this.#request({ kind: 'get', path, maxBytes })) as Uint8Array)
  }

  async putAll(files: readonly WorkspaceFile[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await this.#request({ kind: 'put-all', files })
  }

  async collect(patterns: readonly string[], signal: AbortSignal): Promise<readonly WorkspaceFile[]> {
    signal.throwIfAborted()
    return (await this.#request({ kind: 'collect', patterns })) as readonly WorkspaceFile[]
  }

  async pack(output: Writable, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    output.end(serialize(await this.#request({ kind: 'pack' })))
  }

  async unpack(fill: (input: Writable) => Promise<void>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const input = new PassThrough()
    const [bytes] = await Promise.all([buffer(input), fill(input)])
    await this.#request({ kind: 'unpack', entries: deserialize(bytes) as readonly PackedEntry[] })
  }

  async close(): Promise<void> {
    const isIdle = !this.#ended && this.#pending.size === 0
    this.#end(new TrainError('TOOL_SERVER_DIED', 'The workspace is closed; ask for another.'))
    if (isIdle) {
      this.#thread.off('message', this.#onMessage).off('error', this.#onError).off('exit', this.#onExit)
      this.#threads.giveBack(this.#thread, this.#memoryBytes)
    } else await this.#thread.terminate()
  }

  /** Settles when the command has ended, even if it is aborted. */
  async #command(toRequest: (stop: Int32Array) => WorkspaceRequest, timeoutMs: number, signal: AbortSignal): Promise<CommandResult> {
    signal.throwIfAborted()
    const stop = new Int32Array(new SharedArrayBuffer(4))
    const id = this.#nextId
    let timedOut = false
    let death: NodeJS.Timeout | undefined
    const end = () => {
      Atomics.store(stop, 0, 1)
      this.#thread.postMessage({ id, stopped: true } satisfies WorkspaceMessage)
      death ??= setTimeout(() => {
        this.#end(died('a command could not be ended'))
        void this.#thread.terminate()
      }, stopMs)
    }
    const timer = setTimeout(() => {
      timedOut = true
      end()
    }, timeoutMs)
    signal.addEventListener('abort', end, { once: true })
    try {
      const outcome = (await this.#request(toRequest(stop))) as CommandOutcome
      return { ...outcome, exitCode: timedOut ? 124 : outcome.exitCode, timedOut }
    } finally {
      clearTimeout(timer)
      clearTimeout(death)
      signal.removeEventListener('abort', end)
    }
  }

  async #request(request: WorkspaceRequest): Promise<unknown> {
    this.#check()
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#thread.postMessage({ id, request } satisfies WorkspaceMessage)
    })
  }

  #settle(reply: WorkspaceReply): void {
    const pending = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if ('value' in reply) pending?.resolve(reply.value)
    else if (reply.error.isToolError) pending?.reject(new ToolError(reply.error.message))
    else if (reply.error.code) pending?.reject(new TrainError(reply.error.code, reply.error.message))
    else pending?.reject(died(reply.error.message))
  }

  #check(): void {
    if (this.#ended) throw this.#ended
  }

  #end(error: Error): void {
    if (this.#ended) return
    this.#ended = error
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
    this.#onClose()
  }
}

const died = (why: string, cause?: unknown) =>
  new TrainError('TOOL_SERVER_DIED', `The workspace of the rollout died: ${why}. Its files are lost.`, { cause })
