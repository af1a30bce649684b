// Log-softmax over the vocabulary at a temperature, and the gradient of a sum of logprobs and entropies.
import { F, fma, hmax, hsum, ln, vexp } from './simd'

/** Bytes of what a row yields: maximum, sum of exponentials, logprob of the target, entropy. */
// @ts-ignore: decorator
@inline const STATS: usize = 16

export function headForward(
  rows: i32,
  vocabulary: i32,
  stride: i32,
  inverseTemperature: f32,
  logits: usize,
  targets: usize,
  stats: usize,
): void {
  const step = <usize>stride * F
  const vt = f32x4.splat(inverseTemperature)
  const lowest = f32x4.splat(-87.0)
  for (let i = 0; i < rows; i++, logits += step, targets += 4, stats += STATS) {
    for (let j = <usize>vocabulary * F; j < step; j += F) store<f32>(logits + j, -1e30)
    let top = v128.load(logits)
    for (let j: usize = 16; j < step; j += 16) top = f32x4.pmax(top, v128.load(logits + j))
    const maximum = hmax(top) * inverseTemperature
    const vm = f32x4.splat(maximum)
    let sum = f32x4.splat(0)
    let weighted = f32x4.splat(0)
    for (let j: usize = 0; j < step; j += 16) {
      const z = f32x4.pmax(f32x4.sub(f32x4.mul(v128.load(logits + j), vt), vm), lowest)
      const e = vexp(z)
      sum = f32x4.add(sum, e)
      weighted = fma(e, z, weighted)
    }
    const total = hsum(sum)
    const logTotal = ln(total)
    const target = load<f32>(logits + <usize>load<u32>(targets) * F) * inverseTemperature
    store<f32>(stats, maximum)
    store<f32>(stats, total, 4)
    store<f32>(stats, target - maximum - logTotal, 8)
    store<f32>(stats, logTotal - hsum(weighted) / total, 12)
  }
}

export function headBackward(
  rows: i32,
  stride: i32,
  inverseTemperature: f32,
  logits: usize,
  targets: usize,
  stats: usize,
  coefficients: usize,
): void {
  const step = <usize>stride * F
  const vt = f32x4.splat(inverseTemperature)
  const lowest = f32x4.splat(-87.0)
  for (let i = 0; i < rows; i++, logits += step, targets += 4, stats += STATS, coefficients += 8) {
    const vm = f32x4.splat(load<f32>(stats))
    const total = load<f32>(stats, 4)
    const logprobGradient = load<f32>(coefficients) * inverseTemperature
    const entropyGradient = load<f32>(coefficients, 4) * inverseTemperature
    const inverse = f32x4.splat(<f32>-1.0 / total)
    const slope = f32x4.splat(entropyGradient)
    // d entropy / d z_j = -p_j (log p_j + entropy)
    const constant = f32x4.splat(logprobGradient + entropyGradient * (load<f32>(stats, 12) - ln(total)))
    for (let j: usize = 0; j < step; j += 16) {
      const z = f32x4.pmax(f32x4.sub(f32x4.mul(v128.load(logits + j), vt), vm), lowest)
      const minusP = f32x4.mul(vexp(z), inverse)
      v128.store(logits + j, f32x4.mul(minusP, fma(slope, z, constant)))
    }
    const at = logits + <usize>load<u32>(targets) * F
    store<f32>(at, load<f32>(at) + logprobGradient)
  }
}
