export { isRunning as isAlive } from '@aworld-train/core'

/** Waits until `done` says so, at most `ms` milliseconds; resolves to what it says in the end. */
export async function within(ms: number, done: () => boolean): Promise<boolean> {
  for (const end = Date.now() + ms; !done() && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 10))
  return done()
}
