// Decoding with a cache of keys and values. Every result depends on its own row alone, so neither the batch nor the chunk of a prompt moves a bit.
import { softmaxRow } from './attention'
import { rotateHeads } from './rotate-heads'
import { F, fma, hmax, hsum, up8, vexp } from './simd'

/** scores[j] = query . key j for j < tokens and the rest of the last panel; keys lie in panels of 8 positions, [panel][headDim][8]. */
// @ts-ignore: decorator
@inline
function scoreKeys(tokens: i32, headDim: i32, query: usize, keys: usize, scores: usize): void {
  const bytes = <usize>headDim * F
  const end = query + bytes
  const panel = bytes << 3
  let panels = (tokens + 7) >> 3
  for (; panels >= 2; panels -= 2, keys += 2 * panel, scores += 64) {
    let a0 = f32x4.splat(0)
    let a1 = f32x4.splat(0)
    let b0 = f32x4.splat(0)
    let b1 = f32x4.splat(0)
    let k = keys
    for (let q = query; q < end; q += F, k += 32) {
      const x = v128.load32_splat(q)
      a0 = fma(x, v128.load(k), a0)
      a1 = fma(x, v128.load(k, 16), a1)
      b0 = fma(x, v128.load(k + panel), b0)
      b1 = fma(x, v128.load(k + panel, 16), b1)
    }
    v128.store(scores, a0)
    v128.store(scores, a1, 16)
    v128.store(scores, b0, 32)
    v128.store(scores, b1, 48)
  }
  if (panels) {
    let a0 = f32x4.splat(0)
    let a1 = f32x4.splat(0)
    for (let q = query, k = keys; q < end; q += F, k += 32) {
      const x = v128.load32_splat(q)
      a0 = fma(x, v128.load(k), a0)
      a1 = fma(x, v128.load(k, 16), a1)
    }
    v128.store(scores, a0)
    v128.store(scores, a1, 16)
  }
}

/** out = sum over j < tokens of weight j times value j, [position][headDim]. */
// @ts-ignore: decorator
@inline
function mixValues(tokens: i32, headDim: i32, weights: usize, values: usize, out: usize): void {
  const bytes = <usize>headDim * F
  const end = weights + <usize>(tokens & ~3) * F
  const rest = weights + <usize>tokens * F
  for (let d: usize = 0; d < bytes; d += 32) {
    let a0 = f32x4.splat(0)
    let a1 = f32x4.splat(0)
    let b0 = f32x4.splat(0)
    let b1 = f32x4.splat(0)
    let v = values + d
    let w = weights
    for (; w < end; w += 16) {
      const w0 = v128.load32_splat(w)
      const w1 = v128.load32_splat(w, 4)
      const w2 = v128.load32_splat(w, 8)
      const w3 = v128.load32_splat(w, 12)
      a0 = fma(w0, v128.load(v), a0)
      a1 = fma(w0, v128.load(v, 16), a1)
      v += bytes
      b0 = fma(w1, v128.load(v), b0)
      b1 = fma(w1, v128.load(v, 16), b1)
      v += bytes
      a0 = fma(w2, v128.load(v), a0)
      a1 = fma(w2, v128.load(v, 16), a1)
      v += bytes
      b0 = fma(w3, v128.load(v), b0)
      b1 = fma(w3, v128.load(v, 16), b1)
      v += bytes
    }
    for (; w < rest; w += F, v += bytes) {
      const x = v128.load32_splat(w)
      a0 = fma(x, v128.load(v), a0)
      a1 = fma(x, v128.load(v, 16), a1)
    }
    v128.store(out + d, f32x4.add(a0, b0))
    v128.store(out + d, f32x4.add(a1, b1), 16)
  }
}

function attendCached(
  tokens: i32,
  position: i32,
  heads: i32,
  kvHeads: i32,
  headDim: i32,
  rotated: usize,
  out: usize,
  keys: usize,
  values: usize,
  headStep: usize,
  scores: usize,
): void {
  const bytes = <usize>headDim * F
  const rowStep = <usize>(heads + 2 * kvHeads) * bytes
  const group = heads / kvHeads
  const scale = <f32>1.0 / sqrt<f32>(<f32>headDim)
  for (let t = 0; t < tokens; t++) {
    const at = position + t
    let key = rotated + <usize>t * rowStep + <usize>heads * bytes
    let value = key + <usize>kvHeads * bytes
    let keyTo = keys + <usize>(at >> 3) * (bytes << 3) + (<usize>(at & 7) << 2)
    let valueTo = values + <usize>at * bytes
    for (let kv = 0; kv < kvHeads; kv++, key += bytes, value += bytes, keyTo += headStep, valueTo += headStep) {
      for (let d: usize = 0; d < bytes; d += F) store<f32>(keyTo + (d << 3), load<f32>(key + d))
      memory.copy(valueTo, value, bytes)
    }
  }
  for (let t = 0; t < tokens; t++, rotated += rowStep) {
    const seen = position + t + 1
    let query = rotated
    for (let kv = 0; kv < kvHeads; kv++) {
      const headKeys = keys + <usize>kv * headStep
      const headValues = values + <usize>kv * headStep
      for (let g = 0; g < group; g++, query += bytes, out += bytes) {
        scoreKeys(seen, headDim, query, headKeys, scores)
        softmaxRow(scores, seen, (seen + 3) & ~3, scale)
        mixValues(seen, headDim, scores, headValues, out)
      }
    }
  }
}

/** For each segment (int32 position, count, offset, row): rotates its heads, extends its row's cache and attends over it. */
export function attendSegments(
  count: i32,
  segments: usize,
  heads: i32,
  kvHeads: i32,
  headDim: i32,
  projected: usize,
  rotated: usize,
  attended: usize,
  queryNorm: usize,
  keyNorm: usize,
  epsilon: f32,
  cosines: usize,
  sines: usize,
  cache: usize,
  rowStep: usize,
  headStep: usize,
  scores: usize,
): void {
  const bytes = <usize>headDim * F
  const fused = <usize>(heads + 2 * kvHeads) * bytes
  const query = <usize>heads * bytes
  for (let i = 0; i < count; i++, segments += 16) {
    const position = load<i32>(segments)
    const tokens = load<i32>(segments, 4)
    const offset = <usize>load<u32>(segments, 8)
    const keys = cache + <usize>load<u32>(segments, 12) * rowStep
    const from = projected + offset * fused
    const to = rotated + offset * fused
    rotateHeads(tokens, position, heads, kvHeads, headDim, from, to, queryNorm, keyNorm, 0, epsilon, cosines, sines)
    const values = keys + <usize>kvHeads * headStep
    attendCached(tokens, position, heads, kvHeads, headDim, to, attended + offset * query, keys, values, headStep, scores)
  }
}

/** Draws one id by inverting the cumulative sum of weights in order of id; `uniform` below 0 takes the lowest id of the largest logit. */
export function drawRow(
  vocabulary: i32,
  logits: usize,
  weights: usize,
  inverseTemperature: f32,
  uniform: f64,
  result: usize,
): void {
  const bytes = <usize>up8(vocabulary) * F
  for (let j = <usize>vocabulary * F; j < bytes; j += F) store<f32>(logits + j, -1e30)
  let top = v128.load(logits)
  for (let j: usize = 16; j < bytes; j += 16) top = f32x4.pmax(top, v128.load(logits + j))
  const highest = hmax(top)
  const maximum = highest * inverseTemperature
  const vt = f32x4.splat(inverseTemperature)
  const vm = f32x4.splat(maximum)
  const lowest = f32x4.splat(-87.0)
  let sum = f32x4.splat(0)
  let total: f64 = 0
  for (let j: usize = 0; j < bytes; j += 32) {
    const e0 = vexp(f32x4.pmax(f32x4.sub(f32x4.mul(v128.load(logits + j), vt), vm), lowest))
    const e1 = vexp(f32x4.pmax(f32x4.sub(f32x4.mul(v128.load(logits + j, 16), vt), vm), lowest))
    v128.store(weights + j, e0)
    v128.store(weights + j, e1, 16)
    sum = f32x4.add(f32x4.add(sum, e0), e1)
    total += <f64>hsum(f32x4.add(e0, e1))
  }
  store<f32>(result, maximum)
  store<f32>(result, hsum(sum), 4)
  let id = 0
  if (uniform < 0) {
    while (id < vocabulary - 1 && load<f32>(logits + <usize>id * F) != highest) id++
  } else {
    const threshold = uniform * total
    let seen: f64 = 0
    let j: usize = 0
    for (; j < bytes - 32; j += 32) {
      const next = seen + <f64>hsum(f32x4.add(v128.load(weights + j), v128.load(weights + j, 16)))
      if (next > threshold) break
      seen = next
    }
    id = <i32>(j >> 2)
    const last = min(id + 7, vocabulary - 1)
    for (; id < last; id++) {
      seen += <f64>load<f32>(weights + <usize>id * F)
      if (seen > threshold) break
    }
  }
  store<i32>(result, id, 8)
}
