import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTape, type Matrix } from './float64-tape.ts'

/** Weights by their names in the folder. */
export type Weights = ReadonlyMap<string, Matrix>

/** A Qwen3 model in double precision, with which a trainer's logprobs, loss and gradient are compared. */
export interface ReferenceModel {
  readonly weights: Weights
  /** Logprob of each token after those before it; 0 for the first. */
  logprobs(tokenIds: readonly number[]): Float64Array
  /** Adds the gradient of Σ slopes · logprobs to that of the weights; `slopes` has the length of `tokenIds`. */
  addGradient(tokenIds: readonly number[], slopes: readonly number[]): void
}

interface Config {
  readonly num_hidden_layers: number
  readonly head_dim: number
  readonly rms_norm_eps: number
  readonly rope_theta?: number
  readonly rope_parameters?: { readonly rope_theta: number }
}

/** Reads a Hugging Face folder of a dense Qwen3 (transformers, models/qwen3/modeling_qwen3.py) with weights in float32. */
export async function readReferenceModel(directory: string, temperature = 1): Promise<ReferenceModel> {
  const config = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8')) as Config
  const weights = await readWeights(directory)
  const theta = config.rope_parameters?.rope_theta ?? config.rope_theta ?? 10_000
  const { num_hidden_layers: layers, head_dim: headDim, rms_norm_eps: epsilon } = config
  const table = weights.get('model.embed_tokens.weight')!

  function forward(tokenIds: readonly number[]) {
    const tape = createTape()
    let state = tape.embed(table, tokenIds.slice(0, -1))
    for (let layer = 0; layer < layers; layer++) {
      const weight = (name: string) => weights.get(`model.layers.${layer}.${name}.weight`)!
      const input = tape.norm(state, weight('input_layernorm'), epsilon)
      const head = (name: 'q' | 'k') =>
        tape.rotate(
          tape.norm(tape.linear(input, weight(`self_attn.${name}_proj`)), weight(`self_attn.${name}_norm`), epsilon),
          headDim,
          theta,
        )
      const attended = tape.attend(head('q'), head('k'), tape.linear(input, weight('self_attn.v_proj')), headDim)
      state = tape.add(state, tape.linear(attended, weight('self_attn.o_proj')))
      const middle = tape.norm(state, weight('post_attention_layernorm'), epsilon)
      const gated = tape.gated(tape.linear(middle, weight('mlp.gate_proj')), tape.linear(middle, weight('mlp.up_proj')))
      state = tape.add(state, tape.linear(gated, weight('mlp.down_proj')))
    }
    const last = tape.norm(state, weights.get('model.norm.weight')!, epsilon)
    const logits = tape.linear(last, weights.get('lm_head.weight') ?? table)
    return { tape, logprobs: tape.logprobs(logits, tokenIds.slice(1), temperature) }
  }

  return {
    weights,
    logprobs: (tokenIds) => Float64Array.of(0, ...forward(tokenIds).logprobs.data),
    addGradient(tokenIds, slopes) {
      const { tape, logprobs } = forward(tokenIds)
      logprobs.gradient.set(slopes.slice(1))
      tape.backward()
    },
  }
}

/** The tensors of `model.safetensors` (https://github.com/huggingface/safetensors) as doubles. A vector is one row. */
export async function readWeights(directory: string): Promise<Weights> {
  const bytes = await readFile(join(directory, 'model.safetensors'))
  const start = 8 + Number(bytes.readBigUInt64LE(0))
  const header = JSON.parse(bytes.subarray(8, start).toString('utf8')) as Readonly<
    Record<string, { readonly dtype: string; readonly shape: readonly number[]; readonly data_offsets: readonly [number, number] }>
  >
  const tape = createTape()
  const entries = Object.entries(header).filter(([name]) => name !== '__metadata__')
  return new Map(
    entries.map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        if (dtype !== 'F32') throw new Error(`${name} in ${directory} is ${dtype}; the reference takes F32.`)
        const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + start + from, bytes.byteOffset + start + to))
        const columns = shape.at(-1)!
        return [name, tape.matrix(values.length / columns, columns, Float64Array.from(values))]
      },
    ),
  )
}
