/** Bytes below this address stay unused, so that a null pointer never meets data. */
const arenaStart = 65_536
const pageBytes = 65_536
const alignment = 64

/** A bump pointer over an address range. Every piece starts on a cache line. */
export class Arena {
  readonly end: number
  #next: number

  constructor(start: number = arenaStart, end: number = Number.POSITIVE_INFINITY) {
    this.#next = start
    this.end = end
  }

  /** Address of `bytes` fresh bytes. Throws a RangeError beyond the end of the range. */
  take(bytes: number): number {
    const address = this.#next
    const next = address + Math.ceil(bytes / alignment) * alignment
    if (next > this.end) throw new RangeError(`The arena ends at ${this.end}; ${bytes} bytes at ${address} do not fit.`)
    this.#next = next
    return address
  }

  takeFloats(count: number): number {
    return this.take(count * 4)
  }

  takeDoubles(count: number): number {
    return this.take(count * 8)
  }

  get used(): number {
    return this.#next
  }

  get pages(): number {
    return Math.ceil(this.#next / pageBytes)
  }
}

/** Views over the whole shared memory; index = address / element size. */
export interface Views {
  readonly f32: Float32Array
  readonly f64: Float64Array
  readonly i32: Int32Array
}

export function createViews(buffer: ArrayBufferLike): Views {
  return { f32: new Float32Array(buffer), f64: new Float64Array(buffer), i32: new Int32Array(buffer) }
}
