import { AsyncLocalStorage } from 'node:async_hooks'
import { errorMessage } from '@aworld-train/core'

/** The attempt whose agent or tool left an error behind. */
interface ErrorOwner {
  readonly rollout: string
  /** Whether the attempt takes the error: one that has ended does not. */
  charge(error: unknown): boolean
}

/** Promises, timers and sockets carry the owner of the code that made them, wherever their error surfaces. */
const owners = new AsyncLocalStorage<ErrorOwner>()

/** Runs an agent. Errors that it and its tools leave unhandled are charged to `owner`, while this process watches for such errors. */
export function withErrorOwner<T>(owner: ErrorOwner, run: () => T): T {
  return owners.run(owner, run)
}

/** Listeners of this process. They share one handler for each event, because Node warns of many. */
const reports = new Set<(message: string) => void>()

function take(error: unknown): void {
  const owner = owners.getStore()
  if (owner?.charge(error)) return
  const whose = owner ? `Rollout "${owner.rollout}", which has ended,` : 'Code of no rollout that is known'
  const message = `${whose} left an error that nobody handled: ${errorMessage(error).replace(/\.$/, '')}. The run goes on; handle it there.`
  for (const report of reports) report(message)
}

/**
 * Keeps this process alive when a rejection or an exception goes unhandled, as client libraries cause when a server hangs up. Errors of no
 * running attempt are reported. The returned function ends this.
 */
export function watchStrayErrors(report: (message: string) => void): () => void {
  if (reports.size === 0) process.on('unhandledRejection', take).on('uncaughtException', take)
  reports.add(report)
  return () => {
    reports.delete(report)
    if (reports.size === 0) process.off('unhandledRejection', take).off('uncaughtException', take)
  }
}
