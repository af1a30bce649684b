/** Mixes 32 bits so that every input bit affects every output bit (finaliser of MurmurHash3). */
function mix32(value: number): number {
  let h = value | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** The `counter`-th draw of the stream `(high, low)`: uniform in [0, 1), 32 bits; a pure function. */
export function uniform(high: number, low: number, counter: number): number {
  return mix32(high ^ mix32(low + Math.imul(counter, 0x9e3779b9))) / 4_294_967_296
}

/** Element `index` of a stream of standard normals (Box and Muller, 1958); a pure function. */
export function normal(high: number, low: number, index: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(high, low, 2 * index)))
  return radius * Math.cos(2 * Math.PI * uniform(high, low, 2 * index + 1))
}

/** Makes a stream of `uniform` from a list of names and numbers. It has 64 bits, so that streams do not meet in practice. */
export function streamOf(parts: readonly (string | number)[]): readonly [number, number] {
  let high = 0x2545f491
  let low = 0x9e3779b9
  for (const part of parts) {
    const text = `${typeof part}:${part}`
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      high = Math.imul(high ^ code, 0x9e3779b1)
      low = Math.imul(low ^ code, 0x5f356495)
    }
    high = mix32(high ^ (low >>> 15))
    low = mix32(low ^ (high >>> 13) ^ 0x1b873593)
  }
  return [high, low]
}
