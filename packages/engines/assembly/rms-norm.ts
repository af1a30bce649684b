// Root mean square norm (Zhang and Sennrich 2019): y = x / sqrt(mean(x^2) + epsilon) * weight, and its gradient.
import { F, fma, hsum } from './simd'

/** 1 / rms of d floats. */
// @ts-ignore: decorator
@inline
export function inverseRms(d: i32, x: usize, epsilon: f32): f32 {
  let sum = f32x4.splat(0)
  for (let p = x, end = x + <usize>d * F; p < end; p += 16) {
    const a = v128.load(p)
    sum = fma(a, a, sum)
  }
  return <f32>1.0 / sqrt<f32>(hsum(sum) / <f32>d + epsilon)
}

// @ts-ignore: decorator
@inline
export function normRow(d: i32, x: usize, weight: usize, y: usize, epsilon: f32): f32 {
  const r = inverseRms(d, x, epsilon)
  const vr = f32x4.splat(r)
  for (let j: usize = 0, end = <usize>d * F; j < end; j += 16) {
    v128.store(y + j, f32x4.mul(f32x4.mul(v128.load(x + j), vr), v128.load(weight + j)))
  }
  return r
}

/** dx (+)= , dWeight += of one row; dx may be dy. */
// @ts-ignore: decorator
@inline
export function normRowBackward(d: i32, x: usize, weight: usize, r: f32, dy: usize, dx: usize, dWeight: usize, accumulate: bool): void {
  const vr = f32x4.splat(r)
  const end = <usize>d * F
  let sum = f32x4.splat(0)
  for (let j: usize = 0; j < end; j += 16) {
    const product = f32x4.mul(v128.load(dy + j), v128.load(x + j))
    sum = fma(product, v128.load(weight + j), sum)
    v128.store(dWeight + j, fma(product, vr, v128.load(dWeight + j)))
  }
  const vt = f32x4.splat((hsum(sum) * r * r * r) / <f32>d)
  for (let j: usize = 0; j < end; j += 16) {
    const scaled = f32x4.mul(f32x4.mul(v128.load(dy + j), v128.load(weight + j)), vr)
    const value = f32x4.sub(scaled, f32x4.mul(v128.load(x + j), vt))
    v128.store(dx + j, accumulate ? f32x4.add(v128.load(dx + j), value) : value)
  }
}

export function rmsNorm(rows: i32, d: i32, x: usize, weight: usize, y: usize, scales: usize, epsilon: f32): void {
  const step = <usize>d * F
  for (let i = 0; i < rows; i++, x += step, y += step) {
    const r = normRow(d, x, weight, y, epsilon)
    if (scales) {
      store<f32>(scales, r)
      scales += F
    }
  }
}

export function rmsNormBackward(
  rows: i32,
  d: i32,
  x: usize,
  weight: usize,
  scales: usize,
  dy: usize,
  dx: usize,
  dWeight: usize,
  accumulate: bool,
): void {
  const step = <usize>d * F
  for (let i = 0; i < rows; i++, x += step, dy += step, dx += step, scales += F) {
    normRowBackward(d, x, weight, load<f32>(scales), dy, dx, dWeight, accumulate)
  }
}
