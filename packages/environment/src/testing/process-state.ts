export { isRunning as isAlive } from '@aworld-train/core'

/** Waits until `done` is true, at most `ms` milliseconds. Resolves to its last value. */
export async function within(ms: number, done: () => boolean): Promise<boolean> {
  for (const end = Date.now() + ms; !done() && Date.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 10))
  return done()
}
