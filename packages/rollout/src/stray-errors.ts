import { AsyncLocalStorage } from 'node:async_hooks'
import { errorMessage } from '@aworld-train/protocol'

/** The attempt whose agent or tool left an error behind. */
interface ErrorOwner {
  readonly rollout: string
  /** Whether the attempt takes the error: one that has ended does not. */
  charge(error: unknown): boolean
}

/** Promises, timers and sockets carry the owner of the code that made them, wherever their error comes out. */
const owners = new AsyncLocalStorage<ErrorOwner>()

/** Runs an agent. What it and its tools leave unhandled is charged to `owner` while this process watches for such errors. */
export function withErrorOwner<T>(owner: ErrorOwner, run: () => T): T {
  return owners.run(owner, run)
}

/**
 * Keeps this process alive where a promise is rejected or a timer throws and nobody handles it, as client libraries do when a server
 * hangs up. What is of no attempt that goes on is reported. The function that it returns ends that.
 */
export function watchStrayErrors(report: (message: string) => void): () => void {
  const take = (error: unknown) => {
    const owner = owners.getStore()
    if (owner?.charge(error)) return
    const whose = owner ? `Rollout "${owner.rollout}", which has ended,` : 'Code of no rollout that is known'
    report(`${whose} left an error that nobody handled: ${errorMessage(error).replace(/\.$/, '')}. The run goes on; handle it there.`)
  }
  process.on('unhandledRejection', take).on('uncaughtException', take)
  return () => void process.off('unhandledRejection', take).off('uncaughtException', take)
}
