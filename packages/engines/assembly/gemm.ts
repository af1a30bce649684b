// Matrix product by packed blocks: A in strips of 6 rows, B in panels of 8 columns, a 6 x 8 tile of 12 vector registers.
// The scheme is Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). Every element sums over k in
// one order whatever M is, so a row's bits do not depend on the rows beside it.
import { F, fma } from './simd'

// @ts-ignore: decorator
@inline const MR = 6
// @ts-ignore: decorator
@inline export const NR = 8
/** Depth of a packed block. */
// @ts-ignore: decorator
@inline export const KC = 256
/** Columns of a packed block of B. */
// @ts-ignore: decorator
@inline export const NC = 512
/** Rows of a packed block of A. */
// @ts-ignore: decorator
@inline export const MC: usize = 96
/** Bytes of scratch for a partial panel (MC x 8 floats, rounded up), before the packed block of A. */
// @ts-ignore: decorator
@inline export const EDGE: usize = 4096

// @ts-ignore: decorator
@inline
function put(c: usize, v0: v128, v1: v128, accumulate: bool): void {
  if (accumulate) {
    v0 = f32x4.add(v128.load(c), v0)
    v1 = f32x4.add(v128.load(c, 16), v1)
  }
  v128.store(c, v0)
  v128.store(c, v1, 16)
}

/** One tile of `mr` (a literal, 1 to 6) rows; `if (mr > n)` is decided by the compiler. */
// @ts-ignore: decorator
@inline
function tile(mr: i32, kc: i32, a: usize, b: usize, c: usize, cs: usize, accumulate: bool): void {
  const zero = f32x4.splat(0)
  let c00 = zero, c01 = zero
  let c10 = zero, c11 = zero
  let c20 = zero, c21 = zero
  let c30 = zero, c31 = zero
  let c40 = zero, c41 = zero
  let c50 = zero, c51 = zero
  for (const end = b + (<usize>kc << 5); b < end; a += 24, b += 32) {
    const b0 = v128.load(b)
    const b1 = v128.load(b, 16)
    let x = v128.load32_splat(a)
    c00 = fma(x, b0, c00)
    c01 = fma(x, b1, c01)
    if (mr > 1) {
      x = v128.load32_splat(a, 4)
      c10 = fma(x, b0, c10)
      c11 = fma(x, b1, c11)
    }
    if (mr > 2) {
      x = v128.load32_splat(a, 8)
      c20 = fma(x, b0, c20)
      c21 = fma(x, b1, c21)
    }
    if (mr > 3) {
      x = v128.load32_splat(a, 12)
      c30 = fma(x, b0, c30)
      c31 = fma(x, b1, c31)
    }
    if (mr > 4) {
      x = v128.load32_splat(a, 16)
      c40 = fma(x, b0, c40)
      c41 = fma(x, b1, c41)
    }
    if (mr > 5) {
      x = v128.load32_splat(a, 20)
      c50 = fma(x, b0, c50)
      c51 = fma(x, b1, c51)
    }
  }
  put(c, c00, c01, accumulate)
  if (mr > 1) put(c + 1 * cs, c10, c11, accumulate)
  if (mr > 2) put(c + 2 * cs, c20, c21, accumulate)
  if (mr > 3) put(c + 3 * cs, c30, c31, accumulate)
  if (mr > 4) put(c + 4 * cs, c40, c41, accumulate)
  if (mr > 5) put(c + 5 * cs, c50, c51, accumulate)
}

/** Six full rows stored row by row, turned to k-major four columns at a time. */
// @ts-ignore: decorator
@inline
function packStrip(kc: i32, a: usize, as: usize, q: usize): void {
  let s0 = a
  let s1 = s0 + as
  let s2 = s1 + as
  let s3 = s2 + as
  let s4 = s3 + as
  let s5 = s4 + as
  let k = 0
  for (; k + 4 <= kc; k += 4, q += 96) {
    const x0 = v128.load(s0)
    const x1 = v128.load(s1)
    const x2 = v128.load(s2)
    const x3 = v128.load(s3)
    const x4 = v128.load(s4)
    const x5 = v128.load(s5)
    const t0 = v128.shuffle<i32>(x0, x1, 0, 4, 1, 5)
    const t1 = v128.shuffle<i32>(x2, x3, 0, 4, 1, 5)
    const t2 = v128.shuffle<i32>(x0, x1, 2, 6, 3, 7)
    const t3 = v128.shuffle<i32>(x2, x3, 2, 6, 3, 7)
    const u0 = v128.shuffle<i32>(x4, x5, 0, 4, 1, 5)
    const u1 = v128.shuffle<i32>(x4, x5, 2, 6, 3, 7)
    v128.store(q, v128.shuffle<i64>(t0, t1, 0, 2))
    v128.store64_lane(q, u0, 0, 16)
    v128.store(q, v128.shuffle<i64>(t0, t1, 1, 3), 24)
    v128.store64_lane(q, u0, 1, 40)
    v128.store(q, v128.shuffle<i64>(t2, t3, 0, 2), 48)
    v128.store64_lane(q, u1, 0, 64)
    v128.store(q, v128.shuffle<i64>(t2, t3, 1, 3), 72)
    v128.store64_lane(q, u1, 1, 88)
    s0 += 16
    s1 += 16
    s2 += 16
    s3 += 16
    s4 += 16
    s5 += 16
  }
  for (; k < kc; k++, q += 24) {
    store<f32>(q, load<f32>(s0))
    store<f32>(q, load<f32>(s1), 4)
    store<f32>(q, load<f32>(s2), 8)
    store<f32>(q, load<f32>(s3), 12)
    store<f32>(q, load<f32>(s4), 16)
    store<f32>(q, load<f32>(s5), 20)
    s0 += F
    s1 += F
    s2 += F
    s3 += F
    s4 += F
    s5 += F
  }
}

/** Packs A (m x kc; `ta`: stored [kc, m]) into strips of 6 rows, k-major; a last, shorter strip keeps the stride of 6. */
function packA(ta: bool, m: i32, kc: i32, a: usize, as: usize, p: usize): void {
  for (let i = 0; i < m; i += MR, p += <usize>kc * 24) {
    const rows = m - i
    const end = p + <usize>kc * 24
    if (ta) {
      let s = a + (<usize>i << 2)
      if (rows >= MR) {
        for (let q = p; q < end; q += 24, s += as) {
          v128.store(q, v128.load(s))
          store<u64>(q, load<u64>(s, 16), 16)
        }
      } else {
        for (let q = p; q < end; q += 24, s += as) {
          for (let x: usize = 0; x < <usize>rows << 2; x += 4) store<f32>(q + x, load<f32>(s + x))
        }
      }
    } else {
      let s = a + <usize>i * as
      if (rows >= MR) packStrip(kc, s, as, p)
      else {
        for (let x = 0; x < rows; x++, s += as) {
          for (let k: usize = 0; k < <usize>kc; k++) store<f32>(p + k * 24 + (<usize>x << 2), load<f32>(s + (k << 2)))
        }
      }
    }
  }
}

/** At most MC rows of packed A times one packed panel of B. */
function strips(M: i32, kc: i32, a: usize, b: usize, c: usize, cs: usize, accumulate: bool): void {
  let rows = M
  const step = <usize>kc * 24
  for (; rows >= MR; rows -= MR) {
    tile(6, kc, a, b, c, cs, accumulate)
    a += step
    c += <usize>MR * cs
  }
  if (rows == 5) tile(5, kc, a, b, c, cs, accumulate)
  else if (rows == 4) tile(4, kc, a, b, c, cs, accumulate)
  else if (rows == 3) tile(3, kc, a, b, c, cs, accumulate)
  else if (rows == 2) tile(2, kc, a, b, c, cs, accumulate)
  else if (rows == 1) tile(1, kc, a, b, c, cs, accumulate)
}

/** c (M x nc) (+)= A (M x kc) times panels at `p` (`ps` bytes apart). `scratch`: EDGE bytes and packed rows of A. Steps are bytes. */
export function block(
  ta: bool,
  M: i32,
  kc: i32,
  nc: i32,
  a: usize,
  as: usize,
  p: usize,
  ps: usize,
  c: usize,
  cs: usize,
  accumulate: bool,
  scratch: usize,
): void {
  const packed = scratch + EDGE
  for (let i = 0; i < M; i += <i32>MC) {
    const m = min(<i32>MC, M - i)
    packA(ta, m, kc, ta ? a + (<usize>i << 2) : a + <usize>i * as, as, packed)
    let panel = p
    let out = c + <usize>i * cs
    for (let j = 0; j < nc; j += NR, panel += ps, out += <usize>NR * F) {
      const width = nc - j
      if (width >= NR) strips(m, kc, packed, panel, out, cs, accumulate)
      else {
        strips(m, kc, packed, panel, scratch, 32, false)
        let row = out
        let from = scratch
        for (let r = 0; r < m; r++, row += cs, from += 32) {
          for (let x: usize = 0; x < <usize>width << 2; x += 4) {
            store<f32>(row + x, load<f32>(from + x) + (accumulate ? load<f32>(row + x) : 0))
          }
        }
      }
    }
  }
}

/** Four columns of a [N, K] matrix turned into half a panel of 8. */
// @ts-ignore: decorator
@inline
function packFourColumns(kc: i32, b: usize, bs: usize, q: usize): void {
  let s0 = b
  let s1 = s0 + bs
  let s2 = s1 + bs
  let s3 = s2 + bs
  let k = 0
  for (; k + 4 <= kc; k += 4, q += 128) {
    const x0 = v128.load(s0)
    const x1 = v128.load(s1)
    const x2 = v128.load(s2)
    const x3 = v128.load(s3)
    const t0 = v128.shuffle<i32>(x0, x1, 0, 4, 1, 5)
    const t1 = v128.shuffle<i32>(x2, x3, 0, 4, 1, 5)
    const t2 = v128.shuffle<i32>(x0, x1, 2, 6, 3, 7)
    const t3 = v128.shuffle<i32>(x2, x3, 2, 6, 3, 7)
    v128.store(q, v128.shuffle<i64>(t0, t1, 0, 2))
    v128.store(q, v128.shuffle<i64>(t0, t1, 1, 3), 32)
    v128.store(q, v128.shuffle<i64>(t2, t3, 0, 2), 64)
    v128.store(q, v128.shuffle<i64>(t2, t3, 1, 3), 96)
    s0 += 16
    s1 += 16
    s2 += 16
    s3 += 16
  }
  for (; k < kc; k++, q += 32) {
    store<f32>(q, load<f32>(s0))
    store<f32>(q, load<f32>(s1), 4)
    store<f32>(q, load<f32>(s2), 8)
    store<f32>(q, load<f32>(s3), 12)
    s0 += F
    s1 += F
    s2 += F
    s3 += F
  }
}

/** Packs B (kc x nc; `tb`: stored [nc, kc]) into panels of 8 columns, the last padded with zeros. `bs`: bytes of a stored row. */
export function pack(tb: bool, kc: i32, nc: i32, b: usize, bs: usize, p: usize): void {
  for (let j = 0; j < nc; j += NR) {
    const width = nc - j
    if (width < NR) {
      memory.fill(p, 0, <usize>kc << 5)
      for (let k = 0; k < kc; k++) {
        for (let n = 0; n < width; n++) {
          const from = tb ? b + <usize>n * bs + (<usize>k << 2) : b + <usize>k * bs + (<usize>n << 2)
          store<f32>(p + (<usize>k << 5) + (<usize>n << 2), load<f32>(from))
        }
      }
    } else if (tb) {
      packFourColumns(kc, b, bs, p)
      packFourColumns(kc, b + 4 * bs, bs, p + 16)
    } else {
      let s = b
      for (let q = p, end = p + (<usize>kc << 5); q < end; q += 32, s += bs) {
        v128.store(q, v128.load(s))
        v128.store(q, v128.load(s, 16), 16)
      }
    }
    p += <usize>kc << 5
    b += tb ? <usize>NR * bs : <usize>NR * F
  }
}

export function gemm(
  ta: bool,
  tb: bool,
  M: i32,
  N: i32,
  K: i32,
  a: usize,
  lda: i32,
  b: usize,
  ldb: i32,
  c: usize,
  ldc: i32,
  accumulate: bool,
  scratch: usize,
): void {
  const as = <usize>lda * F
  const bs = <usize>ldb * F
  const panels = scratch + EDGE + MC * <usize>KC * F
  for (let n0 = 0; n0 < N; n0 += NC) {
    const nc = min(NC, N - n0)
    for (let k0 = 0; k0 < K; k0 += KC) {
      const kc = min(KC, K - k0)
      const from = tb ? b + <usize>n0 * bs + <usize>k0 * F : b + <usize>k0 * bs + <usize>n0 * F
      pack(tb, kc, nc, from, bs, panels)
      const left = ta ? a + <usize>k0 * as : a + <usize>k0 * F
      const out = c + <usize>n0 * F
      block(ta, M, kc, nc, left, as, panels, <usize>kc << 5, out, <usize>ldc * F, accumulate || k0 > 0, scratch)
    }
  }
}

export function prepack(tb: bool, K: i32, N: i32, b: usize, ldb: i32, packed: usize): void {
  const bs = <usize>ldb * F
  const columns = <usize>((N + NR - 1) & ~(NR - 1))
  for (let k0 = 0; k0 < K; k0 += KC) {
    const from = tb ? b + <usize>k0 * F : b + <usize>k0 * bs
    pack(tb, min(KC, K - k0), N, from, bs, packed + <usize>k0 * columns * F)
  }
}

export function gemmPacked(
  M: i32,
  N: i32,
  K: i32,
  a: usize,
  lda: i32,
  packed: usize,
  c: usize,
  ldc: i32,
  accumulate: bool,
  scratch: usize,
): void {
  const columns = <usize>((N + NR - 1) & ~(NR - 1))
  for (let k0 = 0; k0 < K; k0 += KC) {
    const kc = min(KC, K - k0)
    const panels = packed + <usize>k0 * columns * F
    const out = <usize>ldc * F
    block(false, M, kc, N, a + <usize>k0 * F, <usize>lda * F, panels, <usize>kc << 5, c, out, accumulate || k0 > 0, scratch)
  }
}
