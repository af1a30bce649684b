// Causal attention with grouped heads over one row of tokens, in blocks of 32 queries. Keys and values are packed once per key head
// and go through the packed product; the backward pass computes the probabilities again instead of storing them.
import { expRow, F, fma, hmax, hsum, SCALED, up8 } from './simd'
import { block, EDGE, KC, MC, pack } from './gemm'

/** Queries of a block. */
// @ts-ignore: decorator
@inline const RB = 32

/** a[0..m) = softmax(scale * a[0..m)), a[m..width) = 0; width is a multiple of 4, at least m. */
// @ts-ignore: decorator
@inline
export function softmaxRow(a: usize, m: i32, width: i32, scale: f32): void {
  for (let j = m; j < width; j++) store<f32>(a + (<usize>j << 2), -1e30)
  const end = a + (<usize>((m + 3) & ~3) << 2)
  let top = v128.load(a)
  for (let p = a + 16; p < end; p += 16) top = f32x4.pmax(top, v128.load(p))
  const vs = f32x4.splat(scale)
  const shift = f32x4.splat(-hmax(top) * scale)
  let sum = f32x4.splat(0)
  expRow(SCALED, a, a, end - a, vs, shift)
  for (let p = a; p < end; p += 16) sum = f32x4.add(sum, v128.load(p))
  const inverse = f32x4.splat(<f32>1.0 / hsum(sum))
  for (let p = a; p < end; p += 16) v128.store(p, f32x4.mul(v128.load(p), inverse))
  for (let j = m; j < width; j++) store<f32>(a + (<usize>j << 2), 0)
}

/** Gradient of the scaled scores from that of the probabilities, in place in d. */
// @ts-ignore: decorator
@inline
function softmaxRowBackward(a: usize, d: usize, width: i32, scale: f32): void {
  const end = <usize>width << 2
  let sum = f32x4.splat(0)
  for (let j: usize = 0; j < end; j += 16) sum = fma(v128.load(a + j), v128.load(d + j), sum)
  const mean = f32x4.splat(hsum(sum))
  const vs = f32x4.splat(scale)
  for (let j: usize = 0; j < end; j += 16) {
    v128.store(d + j, f32x4.mul(f32x4.mul(v128.load(a + j), f32x4.sub(v128.load(d + j), mean)), vs))
  }
}

/** Bytes for the left operand of the packed product: blocks of MC rows of KC, or RB rows as deep as the row is long. */
// @ts-ignore: decorator
@inline
function leftBytes(padded: i32): usize {
  return EDGE + <usize>max(<i32>MC * KC, (RB + 4) * padded) * F
}

export function attention(tokens: i32, from: i32, heads: i32, kvHeads: i32, headDim: i32, rotated: usize, out: usize, scratch: usize): void {
  const scale = <f32>1.0 / sqrt<f32>(<f32>headDim)
  const bytes = <usize>headDim * F
  const rowStep = <usize>(heads + 2 * kvHeads) * bytes
  const outStep = <usize>heads * bytes
  const padded = up8(tokens)
  const scoreStep = <usize>padded * F
  const group = heads / kvHeads
  const keys = scratch + leftBytes(padded)
  const values = keys + <usize>(padded * headDim) * F
  const scores = values + <usize>(up8(headDim) * padded) * F
  for (let kv = 0; kv < kvHeads; kv++) {
    const keyOffset = <usize>(heads + kv) * bytes
    const valueOffset = keyOffset + <usize>kvHeads * bytes
    pack(true, headDim, tokens, rotated + keyOffset, rowStep, keys)
    pack(false, tokens, headDim, rotated + valueOffset, rowStep, values)
    for (let g = 0; g < group; g++) {
      const headOffset = <usize>(kv * group + g) * bytes
      for (let r0 = from; r0 < tokens; r0 += RB) {
        const rows = min(RB, tokens - r0)
        const seen = r0 + rows
        const width = up8(seen)
        const queries = rotated + headOffset + <usize>r0 * rowStep
        block(false, rows, headDim, width, queries, rowStep, keys, <usize>headDim << 5, scores, scoreStep, false, scratch)
        for (let r = 0; r < rows; r++) softmaxRow(scores + <usize>r * scoreStep, r0 + r + 1, width, scale)
        const to = out + headOffset + <usize>r0 * outStep
        block(false, rows, seen, headDim, scores, scoreStep, values, <usize>tokens << 5, to, outStep, false, scratch)
      }
    }
  }
}

export function attentionBackward(
  tokens: i32,
  from: i32,
  heads: i32,
  kvHeads: i32,
  headDim: i32,
  rotated: usize,
  dOut: usize,
  dRotated: usize,
  scratch: usize,
): void {
  const scale = <f32>1.0 / sqrt<f32>(<f32>headDim)
  const bytes = <usize>headDim * F
  const rowStep = <usize>(heads + 2 * kvHeads) * bytes
  const outStep = <usize>heads * bytes
  const padded = up8(tokens)
  const scoreStep = <usize>padded * F
  const group = heads / kvHeads
  const keysT = scratch + leftBytes(padded)
  const valuesT = keysT + <usize>(padded * headDim) * F
  const keys = valuesT + <usize>(padded * headDim) * F
  const probabilities = keys + <usize>(up8(headDim) * padded) * F
  const gradients = probabilities + <usize>RB * scoreStep
  const right = gradients + <usize>RB * scoreStep
  for (let kv = 0; kv < kvHeads; kv++) {
    const keyOffset = <usize>(heads + kv) * bytes
    const valueOffset = keyOffset + <usize>kvHeads * bytes
    pack(true, headDim, tokens, rotated + keyOffset, rowStep, keysT)
    pack(true, headDim, tokens, rotated + valueOffset, rowStep, valuesT)
    pack(false, tokens, headDim, rotated + keyOffset, rowStep, keys)
    for (let g = 0; g < group; g++) {
      const headOffset = <usize>(kv * group + g) * bytes
      for (let r0 = from; r0 < tokens; r0 += RB) {
        const rows = min(RB, tokens - r0)
        const seen = r0 + rows
        const width = up8(seen)
        const queries = rotated + headOffset + <usize>r0 * rowStep
        const dRows = dOut + headOffset + <usize>r0 * outStep
        const depth = <usize>headDim << 5
        block(false, rows, headDim, width, queries, rowStep, keysT, depth, probabilities, scoreStep, false, scratch)
        block(false, rows, headDim, width, dRows, outStep, valuesT, depth, gradients, scoreStep, false, scratch)
        for (let r = 0; r < rows; r++) {
          const a = probabilities + <usize>r * scoreStep
          softmaxRow(a, r0 + r + 1, width, scale)
          softmaxRowBackward(a, gradients + <usize>r * scoreStep, width, scale)
        }
        const rightStep = <usize>rows << 5
        pack(false, rows, headDim, dRows, outStep, right)
        block(true, seen, rows, headDim, probabilities, scoreStep, right, rightStep, dRotated + valueOffset, rowStep, true, scratch)
        const dQueries = dRotated + headOffset + <usize>r0 * rowStep
        block(false, rows, seen, headDim, gradients, scoreStep, keys, <usize>tokens << 5, dQueries, rowStep, false, scratch)
        pack(false, rows, headDim, queries, rowStep, right)
        block(true, seen, rows, headDim, gradients, scoreStep, right, rightStep, dRotated + keyOffset, rowStep, true, scratch)
      }
    }
  }
}
