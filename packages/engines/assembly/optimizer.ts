// Sums over gradients in an order that depends on the shards alone, and AdamW (Loshchilov and Hutter 2019).
import { F, fma } from './simd'

export function reduceShards(shards: i32, gradients: usize, stride: usize, from: usize, to: usize): void {
  const step = stride * F
  for (let p = gradients + from * F, end = gradients + to * F; p < end; p += 16) {
    let sum = v128.load(p)
    let q = p + step
    for (let s = 1; s < shards; s++, q += step) sum = f32x4.add(sum, v128.load(q))
    v128.store(p, sum)
  }
}

export function sumSquares(x: usize, n: usize): f64 {
  let low = f64x2.splat(0)
  let high = f64x2.splat(0)
  for (let end = x + n * F; x < end; x += 16) {
    const a = v128.load(x)
    const l = f64x2.promote_low_f32x4(a)
    const h = f64x2.promote_low_f32x4(v128.shuffle<i64>(a, a, 1, 0))
    low = f64x2.add(low, f64x2.mul(l, l))
    high = f64x2.add(high, f64x2.mul(h, h))
  }
  const sum = f64x2.add(low, high)
  return f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
}

export function adamw(
  n: usize,
  parameters: usize,
  gradients: usize,
  firstMoment: usize,
  secondMoment: usize,
  learningRate: f32,
  beta1: f32,
  beta2: f32,
  epsilon: f32,
  weightDecay: f32,
  correction1: f32,
  correction2: f32,
  scale: f32,
): void {
  const vScale = f32x4.splat(scale)
  const vBeta1 = f32x4.splat(beta1)
  const vBeta2 = f32x4.splat(beta2)
  const vRest1 = f32x4.splat(<f32>1.0 - beta1)
  const vRest2 = f32x4.splat(<f32>1.0 - beta2)
  const vCorrection1 = f32x4.splat(correction1)
  const vCorrection2 = f32x4.splat(correction2)
  const vEpsilon = f32x4.splat(epsilon)
  const vRate = f32x4.splat(learningRate)
  const keep = f32x4.splat(<f32>1.0 - learningRate * weightDecay)
  for (let j: usize = 0, end = n * F; j < end; j += 16) {
    const g = f32x4.mul(v128.load(gradients + j), vScale)
    const m = fma(vBeta1, v128.load(firstMoment + j), f32x4.mul(vRest1, g))
    const v = fma(vBeta2, v128.load(secondMoment + j), f32x4.mul(vRest2, f32x4.mul(g, g)))
    v128.store(firstMoment + j, m)
    v128.store(secondMoment + j, v)
    const denominator = f32x4.add(f32x4.sqrt(f32x4.mul(v, vCorrection2)), vEpsilon)
    const step = f32x4.div(f32x4.mul(m, vCorrection1), denominator)
    v128.store(parameters + j, f32x4.sub(f32x4.mul(v128.load(parameters + j), keep), f32x4.mul(vRate, step)))
  }
}
