import type { Views } from '../arena.ts'
import type { Kernels } from '../kernels/kernels.ts'
import type { Layout } from '../layout.ts'

/** A command's view of its worker. */
export interface WorkerContext {
  readonly kernels: Kernels
  readonly layout: Layout
  readonly views: Views
  readonly threadIndex: number
  readonly threads: number
  /** Waits until every worker is here. Throws if a peer failed or the deadline passed. */
  barrier(): void
  /** The next number 0, 1, 2, … of this command, each given to one worker. The bits of results must not depend on which worker gets it. */
  nextTask(): number
}

/** Runs in every worker of the pool at the same time. The command is done when all have returned. */
export type Command = (context: WorkerContext) => void
