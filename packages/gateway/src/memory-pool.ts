/**
 * Memory of requests and of what is recorded, used again and again: what lies outside of the heap is freed by a collection of
 * all of it, and a body of 100 KB a call brings one every few hundred calls. It moves to the recorder's thread and back; memory
 * that two threads share would cost more, since V8 copies into it in pieces of a word.
 */
export interface MemoryPool {
  /** At least `length` bytes, the caller's until they are given back; `null` where the pool has no such size. */
  take(length: number): Buffer | null
  /** `body` begins what was taken, and nobody reads it any more. Other memory is left alone. */
  give(body: Buffer): void
  /** Whether it lies in memory of the pool that is taken. */
  owns(body: Uint8Array): boolean
  /** Another thread gets it: nothing of it is the pool's until it is taken back. */
  lend(body: Uint8Array): void
  /** Memory that another thread had. */
  takeBack(memory: ArrayBuffer): void
}

/** Smaller bodies cost no more than a reuse; a larger one may have been announced by a client that never sends it. */
const smallest = 16 * 1024
export const largestMemory = 2 * 1024 * 1024

export function createMemoryPool(maxBytes = 128 * 1024 * 1024): MemoryPool {
  /** By size: the powers of two from the smallest to the largest. */
  const free = new Map<number, Buffer[]>()
  const taken = new WeakMap<ArrayBufferLike, Buffer>()
  let freeBytes = 0

  function keep(memory: Buffer): void {
    if (freeBytes + memory.length > maxBytes) return
    freeBytes += memory.length
    const sameSize = free.get(memory.length)
    if (sameSize) sameSize.push(memory)
    else free.set(memory.length, [memory])
  }

  return {
    take(length) {
      if (!(length >= smallest && length <= largestMemory)) return null
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
      keep(memory)
    },
    owns: ({ buffer }) => taken.has(buffer),
    lend({ buffer }) {
      taken.delete(buffer)
    },
    takeBack(memory) {
      const size = memory.byteLength
      if (size >= smallest && size <= largestMemory && Number.isInteger(Math.log2(size))) keep(Buffer.from(memory))
    },
  }
}
