// Four lanes of float32, and the two transcendental functions. Polynomials: Cephes, expf and logf.

/** Bytes of a float. */
// @ts-ignore: decorator
@inline export const F: usize = 4

/** a * b + c; fused where the relaxed instructions are on. */
// @ts-ignore: decorator
@inline
export function fma(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(a, b, c)
  else return f32x4.add(f32x4.mul(a, b), c)
}

/** c - a * b */
// @ts-ignore: decorator
@inline
export function nfma(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_nmadd(a, b, c)
  else return f32x4.sub(c, f32x4.mul(a, b))
}

// @ts-ignore: decorator
@inline
export function up8(n: i32): i32 {
  return (n + 7) & ~7
}

/** Sum of four lanes, always in one order. */
// @ts-ignore: decorator
@inline
export function hsum(a: v128): f32 {
  return (
    f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 1) + (f32x4.extract_lane(a, 2) + f32x4.extract_lane(a, 3))
  )
}

// @ts-ignore: decorator
@inline
export function hmax(a: v128): f32 {
  return max(
    max(f32x4.extract_lane(a, 0), f32x4.extract_lane(a, 1)),
    max(f32x4.extract_lane(a, 2), f32x4.extract_lane(a, 3)),
  )
}

/** exp(x) to 8e-8; x is clamped to [-87, 88] in the operand order that keeps NaN. */
// @ts-ignore: decorator
@inline
export function vexp(x0: v128): v128 {
  const magic = f32x4.splat(12582912.0) // 1.5 * 2^23: adding it rounds to the nearest integer
  const x = f32x4.pmin(f32x4.pmax(x0, f32x4.splat(-87.0)), f32x4.splat(88.0))
  const t = fma(x, f32x4.splat(1.44269504), magic)
  const power = i32x4.shl(i32x4.add(i32x4.sub(t, magic), i32x4.splat(127)), 23)
  const n = f32x4.sub(t, magic)
  let r = nfma(n, f32x4.splat(0.693359375), x) // ln 2 in two parts
  r = nfma(n, f32x4.splat(-2.1219444e-4), r)
  let p = fma(f32x4.splat(1.98756915e-4), r, f32x4.splat(1.3981999507e-3))
  p = fma(p, r, f32x4.splat(8.3334519073e-3))
  p = fma(p, r, f32x4.splat(4.1665795894e-2))
  p = fma(p, r, f32x4.splat(1.6666665459e-1))
  p = fma(p, r, f32x4.splat(5.0000001201e-1))
  return f32x4.mul(f32x4.add(fma(p, f32x4.mul(r, r), r), f32x4.splat(1.0)), power)
}

/** What `expRow` takes the exponential of. */
// @ts-ignore: decorator
@inline export const SCALED = 0
// @ts-ignore: decorator
@inline export const NEGATED = 1

/** All lanes `value`; `none` is 0, which the compilers cannot know. */
// @ts-ignore: decorator
@inline
function held(value: f32, none: i32): v128 {
  return i32x4.splat(reinterpret<i32>(value) | none)
}

/**
 * to[i] = exp(scale * from[i] + shift), or exp(-from[i]) when `kind` (a literal) is NEGATED, as `vexp` computes it; `bytes` is a
 * multiple of 16. V8 builds a vector constant anew wherever it is used, three instructions each, so here they are made once from values
 * that it does not take for constants.
 */
// @ts-ignore: decorator
@inline
export function expRow(kind: i32, from: usize, to: usize, bytes: usize, scale: v128, shift: v128): void {
  const none = <i32>bytes >> 31
  const low = held(-87.0, none)
  const high = held(88.0, none)
  const perPower = held(1.44269504, none)
  const magic = held(12582912.0, none)
  const bias = i32x4.splat(127 | none)
  const ln2 = held(0.693359375, none)
  const ln2Rest = held(-2.1219444e-4, none)
  const c5 = held(1.98756915e-4, none)
  const c4 = held(1.3981999507e-3, none)
  const c3 = held(8.3334519073e-3, none)
  const c2 = held(4.1665795894e-2, none)
  const c1 = held(1.6666665459e-1, none)
  const c0 = held(5.0000001201e-1, none)
  const one = held(1.0, none)
  for (const end = from + bytes; from < end; from += 16, to += 16) {
    const given = v128.load(from)
    let x = kind == NEGATED ? f32x4.neg(given) : fma(given, scale, shift)
    x = f32x4.pmin(f32x4.pmax(x, low), high)
    const t = fma(x, perPower, magic)
    const power = i32x4.shl(i32x4.add(i32x4.sub(t, magic), bias), 23)
    const n = f32x4.sub(t, magic)
    let r = nfma(n, ln2, x)
    r = nfma(n, ln2Rest, r)
    let p = fma(c5, r, c4)
    p = fma(p, r, c3)
    p = fma(p, r, c2)
    p = fma(p, r, c1)
    p = fma(p, r, c0)
    v128.store(to, f32x4.mul(f32x4.add(fma(p, f32x4.mul(r, r), r), one), power))
  }
}

/** ln(x) of a positive normal number, to 8e-8. */
export function ln(x: f32): f32 {
  const bits = reinterpret<i32>(x)
  let exponent = ((bits >> 23) & 255) - 126
  let m = reinterpret<f32>((bits & 0x7fffff) | 0x3f000000) // in [0.5, 1)
  if (!(x < Infinity)) return x // infinity and NaN stay what they are
  if (m < 0.70710678) {
    exponent--
    m = m + m - 1.0
  } else m = m - 1.0
  const z = m * m
  let y: f32 = 7.0376836292e-2
  y = y * m - 1.151461031e-1
  y = y * m + 1.1676998740e-1
  y = y * m - 1.2420140846e-1
  y = y * m + 1.4249322787e-1
  y = y * m - 1.6668057665e-1
  y = y * m + 2.0000714765e-1
  y = y * m - 2.4999993993e-1
  y = y * m + 3.3333331174e-1
  y = y * m * z
  y += <f32>-2.1219444e-4 * <f32>exponent
  y -= <f32>0.5 * z
  return m + y + <f32>0.693359375 * <f32>exponent
}
