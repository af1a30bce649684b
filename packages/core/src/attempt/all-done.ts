/** Waits for all work, and then rejects with its first error, so that nothing is under way after it. */
export async function allDone<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work)
  return await Promise.all(work)
}
