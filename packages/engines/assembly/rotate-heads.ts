// Per head of q and k: RMSNorm (Qwen3), then the rotation of position (RoFormer, Su et al. 2021, in the half-split form of Hugging Face).
import { F } from './simd'
import { normRow, normRowBackward } from './rms-norm'

/** Rotates the pairs (x[j], x[j + half]) by the position's angles; `inverse` turns back. */
// @ts-ignore: decorator
@inline
function rotate(half: usize, x: usize, out: usize, cosines: usize, sines: usize, inverse: bool): void {
  for (let j: usize = 0; j < half; j += 16) {
    const a = v128.load(x + j)
    const b = v128.load(x + half + j)
    const c = v128.load(cosines + j)
    let s = v128.load(sines + j)
    if (inverse) s = f32x4.neg(s)
    v128.store(out + j, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)))
    v128.store(out + half + j, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)))
  }
}

export function rotateHeads(
  tokens: i32,
  position: i32,
  heads: i32,
  kvHeads: i32,
  headDim: i32,
  projected: usize,
  out: usize,
  queryNorm: usize,
  keyNorm: usize,
  scales: usize,
  epsilon: f32,
  cosines: usize,
  sines: usize,
): void {
  const bytes = <usize>headDim * F
  const half = bytes >> 1
  const rotated = heads + kvHeads
  let c = cosines + <usize>position * half
  let s = sines + <usize>position * half
  for (let t = 0; t < tokens; t++, c += half, s += half) {
    for (let h = 0; h < rotated; h++, projected += bytes, out += bytes) {
      if (queryNorm) {
        const r = normRow(headDim, projected, h < heads ? queryNorm : keyNorm, out, epsilon)
        if (scales) {
          store<f32>(scales, r)
          scales += F
        }
        rotate(half, out, out, c, s, false)
      } else rotate(half, projected, out, c, s, false)
    }
    const values = <usize>kvHeads * bytes
    if (out != projected) memory.copy(out, projected, values)
    projected += values
    out += values
  }
}

export function rotateHeadsBackward(
  tokens: i32,
  position: i32,
  heads: i32,
  kvHeads: i32,
  headDim: i32,
  projected: usize,
  gradient: usize,
  queryNorm: usize,
  keyNorm: usize,
  scales: usize,
  dQueryNorm: usize,
  dKeyNorm: usize,
  cosines: usize,
  sines: usize,
): void {
  const bytes = <usize>headDim * F
  const half = bytes >> 1
  const rotated = heads + kvHeads
  let c = cosines + <usize>position * half
  let s = sines + <usize>position * half
  for (let t = 0; t < tokens; t++, c += half, s += half) {
    for (let h = 0; h < rotated; h++, projected += bytes, gradient += bytes) {
      rotate(half, gradient, gradient, c, s, true)
      if (queryNorm) {
        const weight = h < heads ? queryNorm : keyNorm
        const dWeight = h < heads ? dQueryNorm : dKeyNorm
        normRowBackward(headDim, projected, weight, load<f32>(scales), gradient, gradient, dWeight, false)
        scales += F
      }
    }
    projected += <usize>kvHeads * bytes
    gradient += <usize>kvHeads * bytes
  }
}
