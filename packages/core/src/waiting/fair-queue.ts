/** Waiting items of several owners. Owners take turns, so that one with many items delays each of the others by one item at a time. */
export interface FairQueue<T> {
  add(owner: unknown, item: T): void
  /** Removes an item that nobody waits for any more. */
  remove(owner: unknown, item: T): void
  /** Removes and returns the next item; `undefined` if none waits. */
  next(): T | undefined
  isEmpty(): boolean
}

export function createFairQueue<T>(): FairQueue<T> {
  /** Ordered by the next turn of the owners. */
  const waiting = new Map<unknown, Set<T>>()
  return {
    add(owner, item) {
      const items = waiting.get(owner)
      if (items) items.add(item)
      else waiting.set(owner, new Set([item]))
    },
    remove(owner, item) {
      const items = waiting.get(owner)
      items?.delete(item)
      if (items?.size === 0) waiting.delete(owner)
    },
    next() {
      for (const [owner, items] of waiting) {
        waiting.delete(owner)
        for (const item of items) {
          items.delete(item)
          if (items.size > 0) waiting.set(owner, items)
          return item
        }
      }
      return undefined
    },
    isEmpty: () => waiting.size === 0,
  }
}
