/** The shape of a decoder-only transformer of the Qwen3 family. Names follow Hugging Face's config.json, and units are elements. */
export interface ModelConfig {
  readonly vocabularySize: number
  readonly hiddenSize: number
  readonly layers: number
  readonly heads: number
  /** Heads of keys and values; `heads` is a multiple of it. */
  readonly kvHeads: number
  readonly headDim: number
  readonly intermediateSize: number
  readonly ropeTheta: number
  readonly rmsNormEps: number
  readonly tieWordEmbeddings: boolean
  /** RMSNorm over each query and key head before the rotation. */
  readonly qkNorm: boolean
  /** Longest row of tokens, prompt and completion together. */
  readonly contextLength: number
}

/** Widths derived from a shape: all heads of queries, of keys (or values), and one row of the fused q|k|v product. */
export function attentionWidths(model: ModelConfig): { query: number; key: number; fused: number } {
  const query = model.heads * model.headDim
  const key = model.kvHeads * model.headDim
  return { query, key, fused: query + 2 * key }
}

/** Problems of a shape for these kernels, one sentence each; empty if it can run. */
export function modelConfigProblems(model: ModelConfig): string[] {
  const problems: string[] = []
  const whole = (name: keyof ModelConfig, multiple = 1): void => {
    const value = model[name]
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1 || value % multiple !== 0) {
      problems.push(`${name} is ${value}; it must be a positive ${multiple === 1 ? 'integer' : `multiple of ${multiple}`}.`)
    }
  }
  whole('vocabularySize')
  whole('hiddenSize', 4)
  whole('layers')
  whole('heads')
  whole('kvHeads')
  whole('headDim', 8)
  whole('intermediateSize', 4)
  whole('contextLength')
  if (model.headDim > 256) problems.push(`headDim is ${model.headDim}; the attention kernels hold at most 256.`)
  if (model.heads % model.kvHeads !== 0) problems.push(`heads (${model.heads}) is not a multiple of kvHeads (${model.kvHeads}).`)
  if (!(model.ropeTheta > 0)) problems.push(`ropeTheta is ${model.ropeTheta}; it must be positive.`)
  if (!(model.rmsNormEps > 0)) problems.push(`rmsNormEps is ${model.rmsNormEps}; it must be positive.`)
  return problems
}
