import { Worker } from 'node:worker_threads'
import { errorMessage, siblingModule, TrainError, withDeadline } from '@aworld-train/core'
import { createViews, type Views } from '../arena.ts'
import type { LoadedKernels } from '../kernels/load-kernels.ts'
import { type WasmMemory, wasm } from '../kernels/webassembly.ts'
import { createLayout, type Layout, type LayoutOptions } from '../layout.ts'
import { fillRotations } from '../model/rotations.ts'
import { type CommandName, commandNames } from './commands.ts'
import { exitCommand, word } from './control.ts'
import type { WorkerData } from './worker.ts'

export interface PoolOptions {
  readonly kernels: LoadedKernels
  readonly layout: LayoutOptions
}

export interface CommandOptions {
  /** Writes the command's arguments into the arena. Called when it is the command's turn, before the workers start. */
  readonly prepare?: () => void
  /** A command that takes longer fails the pool. Default 10 minutes. */
  readonly deadlineMs?: number
}

/** Worker threads over one shared memory. Commands run one at a time, in the order of `run`. */
export interface Pool {
  readonly layout: Layout
  readonly views: Views
  readonly threads: number
  /** Resolves when all workers have finished the command. Rejects with POLICY_WORKER_DIED if a worker dies or has died. */
  run(command: CommandName, options?: CommandOptions): Promise<void>
  /** Ends the workers. Waiting commands are rejected. */
  close(): Promise<void>
}

const defaultDeadlineMs = 600_000
const startDeadlineMs = 30_000
const closeDeadlineMs = 5_000
const watchIntervalMs = 500

interface PendingCommand {
  readonly command: CommandName
  readonly options: CommandOptions
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Starts the pool: memory of exactly the layout's size, and one worker a thread. Throws CONFIG_INVALID or POLICY_WORKER_DIED. */
export async function createPool({ kernels, layout: options }: PoolOptions): Promise<Pool> {
  const layout = createLayout(options)
  if (layout.pages > 65_536) {
    const gib = (layout.pages / 16_384).toFixed(1)
    throw new TrainError(
      'CONFIG_INVALID',
      `The model needs ${gib} GiB and the engine can address 4; use a smaller model, context or number of shards.`,
    )
  }
  const memory = allocateMemory(layout.pages)
  const pool = new WorkerPool(layout, memory)
  fillRotations(layout, pool.views)
  await pool.start(kernels, memory)
  return pool
}

function allocateMemory(pages: number): WasmMemory {
  try {
    return new wasm.Memory({ initial: pages, maximum: pages, shared: true })
  } catch (cause) {
    const mib = Math.ceil(pages / 16)
    throw new TrainError(
      'CONFIG_INVALID',
      `The engine could not reserve ${mib} MiB of memory; use a smaller model or context, or free memory.`,
      { cause },
    )
  }
}

class WorkerPool implements Pool {
  readonly layout: Layout
  readonly views: Views
  readonly threads: number
  readonly #words: Int32Array
  readonly #base: number
  readonly #workers: Worker[] = []
  readonly #queue: PendingCommand[] = []
  #failure: TrainError | undefined
  #running = false
  #closing = false

  constructor(layout: Layout, memory: WasmMemory) {
    this.layout = layout
    this.views = createViews(memory.buffer)
    this.threads = layout.options.threads
    this.#words = this.views.i32
    this.#base = layout.control / 4
  }

  async start(kernels: LoadedKernels, memory: WasmMemory): Promise<void> {
    const url = siblingModule('worker', import.meta.url)
    const ready = Array.from({ length: this.threads }, (_, threadIndex) => {
      const workerData: WorkerData = { module: kernels.module, memory, options: this.layout.options, threadIndex }
      // Workers import nothing but their own files, and flags of the process such as --input-type would stop them.
      const worker = new Worker(url, { workerData, name: `aworld-train-engine-${threadIndex}`, execArgv: [] })
      this.#workers.push(worker)
      return new Promise<void>((resolve, reject) => {
        const fail = (cause: unknown, what: string): void => {
          this.#fail(`Worker ${threadIndex} of the engine ${what}; close the engine and start it again.`, cause)
          reject(this.#failure)
        }
        worker.once('message', () => resolve())
        worker.once('error', (error) => fail(error, `threw "${errorMessage(error)}"`))
        worker.once('exit', (code) => {
          if (!this.#closing) fail(undefined, `ended with code ${code}`)
        })
      })
    })
    const late = () => {
      this.#fail(`The workers of the engine did not start within ${startDeadlineMs} ms; start it again when the machine is less busy.`)
      return this.#failure!
    }
    try {
      await withDeadline(Promise.all(ready), startDeadlineMs, late)
    } catch (error) {
      await this.close()
      throw error
    } finally {
      for (const promise of ready) promise.catch(() => {})
    }
    for (const worker of this.#workers) worker.unref()
  }

  run(command: CommandName, options: CommandOptions = {}): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#closing) return Promise.reject(new TrainError('POLICY_UNAVAILABLE', `The engine is closed; ${command} cannot run.`))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#queue.push({ command, options, resolve, reject })
    if (!this.#running) void this.#drain()
    return promise
  }

  async close(): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    for (const { reject } of this.#queue.splice(0))
      reject(new TrainError('POLICY_UNAVAILABLE', 'The engine was closed before the command ran.'))
    const exits = this.#workers.map((worker) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (worker.threadId === -1) resolve()
      else worker.once('exit', () => resolve())
      worker.ref()
      return promise
    })
    const idle = !this.#failure && !this.#running
    this.#failure ??= new TrainError('POLICY_UNAVAILABLE', 'The engine was closed while the command ran.')
    if (idle) this.#raise(exitCommand)
    else {
      Atomics.store(this.#words, this.#base + word.failed, 1)
      Atomics.notify(this.#words, this.#base + word.barrierGeneration)
      Atomics.notify(this.#words, this.#base + word.finished)
    }
    const timer = setTimeout(() => this.#terminate(), idle ? closeDeadlineMs : 0)
    await Promise.all(exits)
    clearTimeout(timer)
  }

  #terminate(): void {
    for (const worker of this.#workers) void worker.terminate()
  }

  async #drain(): Promise<void> {
    this.#running = true
    for (const worker of this.#workers) worker.ref()
    let deadline = Number.POSITIVE_INFINITY
    let current = ''
    // One timer watches all commands of a burst. A timeout for each of thousands of short commands would cost more than they do.
    const watch = setInterval(() => {
      if (performance.now() > deadline)
        this.#fail(`The engine's command ${current} did not end before its deadline; start the engine again.`)
    }, watchIntervalMs)
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      current = next.command
      deadline = performance.now() + (next.options.deadlineMs ?? defaultDeadlineMs)
      try {
        await this.#execute(next)
        next.resolve()
      } catch (error) {
        next.reject(error as Error)
      }
    }
    clearInterval(watch)
    for (const worker of this.#workers) worker.unref()
    this.#running = false
  }

  async #execute({ command, options }: PendingCommand): Promise<void> {
    if (this.#failure) throw this.#failure
    options.prepare?.()
    const epoch = this.#raise(commandNames.indexOf(command))
    const at = this.#base + word.finished
    for (let seen = Atomics.load(this.#words, at); seen !== epoch; seen = Atomics.load(this.#words, at)) {
      if (this.#failure) throw this.#failure
      const waiting = Atomics.waitAsync(this.#words, at, seen)
      if (waiting.async) await waiting.value
    }
  }

  /** Starts a command in all workers; returns its epoch. */
  #raise(command: number): number {
    const words = this.#words
    Atomics.store(words, this.#base + word.done, 0)
    Atomics.store(words, this.#base + word.nextTask, 0)
    Atomics.store(words, this.#base + word.command, command)
    const epoch = (Atomics.load(words, this.#base + word.epoch) + 1) | 0
    Atomics.store(words, this.#base + word.epoch, epoch)
    Atomics.notify(words, this.#base + word.epoch)
    return epoch
  }

  /** Marks the pool dead and wakes everyone who waits for the dead worker. */
  #fail(message: string, cause?: unknown): void {
    if (this.#failure || this.#closing) return
    this.#failure = new TrainError('POLICY_WORKER_DIED', message, { cause })
    Atomics.store(this.#words, this.#base + word.failed, 1)
    Atomics.notify(this.#words, this.#base + word.barrierGeneration)
    Atomics.notify(this.#words, this.#base + word.finished)
  }
}
