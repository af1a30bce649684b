/**
 * Memory of requests, used again and again: what lies outside of the heap is freed by a collection of all of it, and a body of
 * 100 KB a call brings one every few hundred calls.
 */
export interface BodyPool {
  /** At least `length` bytes, the caller's until they are given back; `null` where the pool has no such size. */
  take(length: number): Buffer | null
  /** `body` begins what was taken, and nobody reads it any more. Other memory is left alone. */
  give(body: Buffer): void
}

/** Smaller bodies cost no more than a reuse; a larger one may have been announced by a client that never sends it. */
const smallest = 16 * 1024
const largest = 1024 * 1024

export function createBodyPool(maxBytes = 32 * 1024 * 1024): BodyPool {
  /** By size: the powers of two from `smallest` to `largest`. */
  const free = new Map<number, Buffer[]>()
  const taken = new WeakMap<ArrayBufferLike, Buffer>()
  let freeBytes = 0
  return {
    take(length) {
      if (!(length >= smallest && length <= largest)) return null
      const size = 2 ** Math.ceil(Math.log2(length))
      let memory = free.get(size)?.pop()
      if (memory) freeBytes -= size
      else memory = Buffer.allocUnsafeSlow(size)
      taken.set(memory.buffer, memory)
      return memory
    },
    give({ buffer }) {
      const memory = taken.get(buffer)
      if (!memory) return
      taken.delete(buffer)
      if (freeBytes + memory.length > maxBytes) return
      freeBytes += memory.length
      const sameSize = free.get(memory.length)
      if (sameSize) sameSize.push(memory)
      else free.set(memory.length, [memory])
    },
  }
}
