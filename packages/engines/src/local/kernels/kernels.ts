import type { DecodeKernels } from '../sampler/decode-kernels.ts'

/**
 * The exports of both modules. Addresses are bytes, leading dimensions (`ld…`) and counts are floats, `1`/`0` stand for true/false.
 * Matrices are row-major. Hidden sizes are multiples of 4.
 */
export interface Kernels extends DecodeKernels {
  /** c [M, N] (+)= op(a) op(b); `ta`: a is stored [K, M]; `tb`: b is stored [N, K]. `scratch`: `gemmScratchBytes()`. */
  gemm(
    ta: number,
    tb: number,
    M: number,
    N: number,
    K: number,
    a: number,
    lda: number,
    b: number,
    ldb: number,
    c: number,
    ldc: number,
    accumulate: number,
    scratch: number,
  ): void
  /** Packs all of b (K x N; `tb`: stored [N, K]) for `gemmPacked`: `packedFloats(K, N)` floats. */
  prepack(tb: number, K: number, N: number, b: number, ldb: number, packed: number): void
  /** c [M, N] (+)= a [M, K] * packed; an element's bits do not depend on M. `scratch` as for `gemm`. */
  gemmPacked(
    M: number,
    N: number,
    K: number,
    a: number,
    lda: number,
    packed: number,
    c: number,
    ldc: number,
    accumulate: number,
    scratch: number,
  ): void
  /** out[i] = table[ids[i]], rows of d floats. */
  gatherRows(rows: number, d: number, ids: number, table: number, out: number): void
  /** table[ids[i]] += rows[i], in order. */
  scatterAddRows(rows: number, d: number, ids: number, source: number, table: number): void
  /** y = x / rms(x) * weight; `scales` [rows] receives 1 / rms where it is not 0. */
  rmsNorm(rows: number, d: number, x: number, weight: number, y: number, scales: number, epsilon: number): void
  /** dx (+)= gradient of rmsNorm; dWeight += . */
  rmsNormBackward(
    rows: number,
    d: number,
    x: number,
    weight: number,
    scales: number,
    dy: number,
    dx: number,
    dWeight: number,
    accumulate: number,
  ): void
  /**
   * Normalises (when `queryNorm` is not 0) and rotates the heads of q and k, for tokens of one row at positions from `position`; copies v
   * where `out` is not `projected`. Both are [tokens, (heads + 2 kvHeads) * headDim]; `scales` [tokens, heads + kvHeads] may be 0.
   */
  rotateHeads(
    tokens: number,
    position: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    projected: number,
    out: number,
    queryNorm: number,
    keyNorm: number,
    scales: number,
    epsilon: number,
    cosines: number,
    sines: number,
  ): void
  /** Turns `gradient` (of the rotated q|k|v) into that of the projected q|k|v, in place; dQueryNorm, dKeyNorm += . */
  rotateHeadsBackward(
    tokens: number,
    position: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    projected: number,
    gradient: number,
    queryNorm: number,
    keyNorm: number,
    scales: number,
    dQueryNorm: number,
    dKeyNorm: number,
    cosines: number,
    sines: number,
  ): void
  /** Causal attention of one row of tokens, for its queries from `from` on; `rotated` [tokens, fused], out [tokens, heads * headDim]. `scratch`: `attentionScratchBytes`. */
  attention(
    tokens: number,
    from: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    rotated: number,
    out: number,
    scratch: number,
  ): void
  /** dRotated (zeroed by the caller) += gradient; the probabilities are computed again. */
  attentionBackward(
    tokens: number,
    from: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    rotated: number,
    dOut: number,
    dRotated: number,
    scratch: number,
  ): void
  /** out [rows, width] = silu(gate) * up, of gateUp [rows, 2 * width]. */
  swiGlu(rows: number, width: number, gateUp: number, out: number): void
  /** dGateUp from dOut; also writes silu(gate) * up to `out` again. */
  swiGluBackward(rows: number, width: number, gateUp: number, dOut: number, dGateUp: number, out: number): void
  /**
   * Per row of logits * inverseTemperature: `stats` [rows, 4] = maximum, sum of exponentials, logprob of the target, entropy.
   * Writes behind the vocabulary, up to `stride` (a multiple of 8).
   */
  headForward(
    rows: number,
    vocabulary: number,
    stride: number,
    inverseTemperature: number,
    logits: number,
    targets: number,
    stats: number,
  ): void
  /** Replaces logits by the gradient of sum(a * logprob + b * entropy), `coefficients` [rows, 2] = a, b. */
  headBackward(
    rows: number,
    stride: number,
    inverseTemperature: number,
    logits: number,
    targets: number,
    stats: number,
    coefficients: number,
  ): void
  /** y[0..n) = 0; n floats. */
  zero(y: number, n: number): void
  copy(to: number, from: number, n: number): void
  /** gradients[0][i] = sum over shards in order, for floats from..to (a multiple of 4 apart); `stride` in floats. */
  reduceShards(shards: number, gradients: number, stride: number, from: number, to: number): void
  /** Sum of squares of n floats (a multiple of 4), accumulated in float64. */
  sumSquares(x: number, n: number): number
  /** AdamW over n floats (a multiple of 4): decoupled weight decay; `scale` multiplies the gradient. */
  adamw(
    n: number,
    parameters: number,
    gradients: number,
    firstMoment: number,
    secondMoment: number,
    learningRate: number,
    beta1: number,
    beta2: number,
    epsilon: number,
    weightDecay: number,
    correction1: number,
    correction2: number,
    scale: number,
  ): void
}
