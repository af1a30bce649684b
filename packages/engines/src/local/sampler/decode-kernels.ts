/** The exports of assembly/decode.ts. Addresses and steps are bytes; bits of a row depend on that row alone. */
export interface DecodeKernels {
  /**
   * For each segment (int32 position, count, offset of its first token, row): normalises and rotates the heads of `projected`
   * [tokens, (heads + 2 kvHeads) * headDim] into `rotated`, writes its keys and values into the row's cache, and attends over everything up
   * to each token: `attended` [tokens, heads * headDim]. A row's cache is at `cache + row * rowStep`: kvHeads of keys (panels of 8 positions,
   * [panel][headDim][8]), then of values ([position][headDim]), `headStep` apart. `scores`: floats of the context, rounded up to 16.
   */
  attendSegments(
    count: number,
    segments: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    projected: number,
    rotated: number,
    attended: number,
    queryNorm: number,
    keyNorm: number,
    epsilon: number,
    cosines: number,
    sines: number,
    cache: number,
    rowStep: number,
    headStep: number,
    scores: number,
  ): void
  /**
   * Draws an id from the softmax of logits * inverseTemperature by a uniform number in [0, 1); below 0 it takes the largest logit.
   * `logits` and `weights` hold the vocabulary rounded up to 8; `weights` receives exp(z - maximum).
   * `result`: float32 maximum of z, float32 sum of the weights, int32 id.
   */
  drawRow(vocabulary: number, logits: number, weights: number, inverseTemperature: number, uniform: number, result: number): void
}
