import { parentPort, workerData } from 'node:worker_threads'
import { createViews } from '../arena.ts'
import type { Kernels } from '../kernels/kernels.ts'
import { type WasmMemory, type WasmModule, wasm } from '../kernels/webassembly.ts'
import { createLayout, type LayoutOptions } from '../layout.ts'
import { commandNames, commands } from './commands.ts'
import { barrier, exitCommand, idleWaitMs, word } from './control.ts'
import type { WorkerContext } from './worker-context.ts'

/** The data that the pool passes to a worker. */
export interface WorkerData {
  readonly module: WasmModule
  readonly memory: WasmMemory
  readonly options: LayoutOptions
  readonly threadIndex: number
}

function serve({ module, memory, options, threadIndex }: WorkerData): void {
  const layout = createLayout(options)
  const views = createViews(memory.buffer)
  const { exports } = new wasm.Instance(module, { env: { memory } })
  const kernels = exports as unknown as Kernels
  const words = views.i32
  const base = layout.control / 4
  const { threads } = options
  const context: WorkerContext = {
    kernels,
    layout,
    views,
    threadIndex,
    threads,
    barrier: () => barrier(words, base, threads),
    nextTask: () => Atomics.add(words, base + word.nextTask, 1),
  }
  let epoch = 0
  parentPort!.postMessage('ready')
  for (;;) {
    while (Atomics.load(words, base + word.epoch) === epoch) Atomics.wait(words, base + word.epoch, epoch, idleWaitMs)
    epoch = Atomics.load(words, base + word.epoch)
    const number = Atomics.load(words, base + word.command)
    if (number === exitCommand) return
    commands[commandNames[number]!](context)
    if (Atomics.add(words, base + word.done, 1) === threads - 1) {
      Atomics.store(words, base + word.finished, epoch)
      Atomics.notify(words, base + word.finished)
    }
  }
}

serve(workerData as WorkerData)
