import { attentionWidths, type ModelConfig } from './model-config.ts'

/** One tensor of the checkpoint: its Hugging Face name, shape ([out, in], or [n]) and offset in the parameter buffer, in floats. */
export interface Parameter {
  readonly name: string
  readonly shape: readonly number[]
  readonly offset: number
  readonly size: number
}

/** Offsets of one layer's tensors, in floats. q, k, v are adjacent, and so are gate and up, so that each group is one product. */
export interface LayerOffsets {
  readonly inputNorm: number
  readonly qkv: number
  /** -1 without q/k-norm. */
  readonly queryNorm: number
  readonly keyNorm: number
  readonly output: number
  readonly postNorm: number
  readonly gateUp: number
  readonly down: number
}

export interface ParameterTable {
  /** In the order of the buffer. */
  readonly parameters: readonly Parameter[]
  readonly layers: readonly LayerOffsets[]
  readonly embedding: number
  readonly finalNorm: number
  /** The embedding's offset when the two are tied. */
  readonly head: number
  /** Floats of all tensors. The buffer is padded further, with zeros. */
  readonly count: number
}

/** The place of every tensor in the parameter buffer. Gradients and both moments have the same order. */
export function createParameterTable(model: ModelConfig): ParameterTable {
  const parameters: Parameter[] = []
  let offset = 0
  const add = (name: string, ...shape: number[]): number => {
    const size = shape.reduce((product, n) => product * n, 1)
    const at = offset
    parameters.push({ name, shape, offset: at, size })
    offset += size
    return at
  }
  const d = model.hiddenSize
  const { query, key } = attentionWidths(model)
  const embedding = add('model.embed_tokens.weight', model.vocabularySize, d)
  const layers: LayerOffsets[] = []
  for (let layer = 0; layer < model.layers; layer++) {
    const name = (rest: string): string => `model.layers.${layer}.${rest}.weight`
    const inputNorm = add(name('input_layernorm'), d)
    const qkv = add(name('self_attn.q_proj'), query, d)
    add(name('self_attn.k_proj'), key, d)
    add(name('self_attn.v_proj'), key, d)
    const queryNorm = model.qkNorm ? add(name('self_attn.q_norm'), model.headDim) : -1
    const keyNorm = model.qkNorm ? add(name('self_attn.k_norm'), model.headDim) : -1
    const output = add(name('self_attn.o_proj'), d, query)
    const postNorm = add(name('post_attention_layernorm'), d)
    const gateUp = add(name('mlp.gate_proj'), model.intermediateSize, d)
    add(name('mlp.up_proj'), model.intermediateSize, d)
    const down = add(name('mlp.down_proj'), d, model.intermediateSize)
    layers.push({ inputNorm, qkv, queryNorm, keyNorm, output, postNorm, gateUp, down })
  }
  const finalNorm = add('model.norm.weight', d)
  const head = model.tieWordEmbeddings ? embedding : add('lm_head.weight', model.vocabularySize, d)
  return { parameters, layers, embedding, finalNorm, head, count: offset }
}
