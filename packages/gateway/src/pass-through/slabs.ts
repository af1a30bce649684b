/** Memory that two threads see, used again and again: fresh memory costs more than the copy into it. */
export interface Slab {
  readonly number: number
  readonly bytes: Uint8Array
}

export interface Slabs {
  /** A slab of at least `size` bytes, which is the caller's until it is given back. */
  take(size: number): Slab
  give(slab: Slab): void
}

/** Slabs of `slabBytes`, at most `kept` of which wait for use; what is larger is made to measure and dropped. */
export function createSlabs(slabBytes: number, kept: number): Slabs {
  const free: Slab[] = []
  let made = 0
  return {
    take(size) {
      if (size <= slabBytes) {
        const slab = free.pop()
        if (slab) return slab
      }
      return { number: made++, bytes: new Uint8Array(new SharedArrayBuffer(Math.max(size, slabBytes))) }
    },
    give(slab) {
      if (slab.bytes.length === slabBytes && free.length < kept) free.push(slab)
    },
  }
}
