import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord, TrainError } from '@aworld-train/core'
import { type ModelConfig, modelConfigProblems } from '../model-config.ts'

/** Files of a Hugging Face folder beside its weights, copied whole into every checkpoint. */
export const companionFiles = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
] as const

export interface ModelFolder {
  readonly config: ModelConfig
  /** Ids that end a completion, from generation_config.json, else config.json. */
  readonly stopTokenIds: readonly number[]
}

/** Reads the shape of the model in `directory` (its config.json). Throws CONFIG_INVALID if these kernels cannot run it. */
export async function loadModelConfig(directory: string): Promise<ModelConfig> {
  const path = join(directory, 'config.json')
  return fromHuggingFaceConfig(await readJsonObject(path), path)
}

export async function loadModelFolder(directory: string): Promise<ModelFolder> {
  const path = join(directory, 'config.json')
  const json = await readJsonObject(path)
  const config = fromHuggingFaceConfig(json, path)
  const generation = await readJsonObject(join(directory, 'generation_config.json'), {})
  const stop = toIds(generation['eos_token_id'] ?? json['eos_token_id'])
  return { config, stopTokenIds: stop.filter((id) => id < config.vocabularySize) }
}

/** The config.json that transformers 4 and 5 load as the same model: Qwen3ForCausalLM, or LlamaForCausalLM without q/k-norm. */
export function toHuggingFaceConfig(
  config: ModelConfig,
  stopTokenIds: readonly number[],
  padTokenId: number | null,
): Record<string, unknown> {
  return {
    architectures: [config.qkNorm ? 'Qwen3ForCausalLM' : 'LlamaForCausalLM'],
    model_type: config.qkNorm ? 'qwen3' : 'llama',
    vocab_size: config.vocabularySize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    hidden_act: 'silu',
    max_position_embeddings: config.contextLength,
    rms_norm_eps: config.rmsNormEps,
    rope_theta: config.ropeTheta,
    rope_parameters: { rope_type: 'default', rope_theta: config.ropeTheta },
    tie_word_embeddings: config.tieWordEmbeddings,
    attention_bias: false,
    attention_dropout: 0,
    ...(config.qkNorm ? { use_sliding_window: false } : { mlp_bias: false }),
    bos_token_id: null,
    eos_token_id: idOrIds(stopTokenIds),
    pad_token_id: padTokenId,
    torch_dtype: 'float32',
    dtype: 'float32',
  }
}

export function toGenerationConfig(stopTokenIds: readonly number[], padTokenId: number | null): Record<string, unknown> {
  return {
    do_sample: true,
    temperature: 1,
    top_k: 0,
    top_p: 1,
    bos_token_id: null,
    eos_token_id: idOrIds(stopTokenIds),
    pad_token_id: padTokenId,
  }
}

/** The shape in a parsed config.json of the Qwen3 or Llama family; `path` names it in errors. */
export function fromHuggingFaceConfig(json: Readonly<Record<string, unknown>>, path: string): ModelConfig {
  const problems: string[] = []
  const type = json['model_type']
  if (type !== 'qwen3' && type !== 'llama') problems.push(`model_type is ${JSON.stringify(type)}; qwen3 and llama can run.`)
  const count = (key: string, fallback?: number): number => {
    const value = json[key] ?? fallback
    if (typeof value !== 'number') problems.push(`${key} is ${JSON.stringify(value)}; it must be a number.`)
    return typeof value === 'number' ? value : Number.NaN
  }
  const rope = (json['rope_parameters'] ?? json['rope_scaling'] ?? {}) as Readonly<Record<string, unknown>>
  const ropeType = rope['rope_type'] ?? rope['type'] ?? 'default'
  if (ropeType !== 'default') problems.push(`rope type ${JSON.stringify(ropeType)} cannot run; only "default" can.`)
  if (json['attention_bias'] === true || json['mlp_bias'] === true) problems.push('biases cannot run.')
  if (json['use_sliding_window'] === true) problems.push('sliding-window attention cannot run.')
  const activation = json['hidden_act'] ?? 'silu'
  if (activation !== 'silu') problems.push(`hidden_act is ${JSON.stringify(activation)}; only "silu" can run.`)
  const heads = count('num_attention_heads')
  const hiddenSize = count('hidden_size')
  const theta = json['rope_theta'] ?? rope['rope_theta'] ?? 10_000
  const config: ModelConfig = {
    vocabularySize: count('vocab_size'),
    hiddenSize,
    layers: count('num_hidden_layers'),
    heads,
    kvHeads: count('num_key_value_heads', heads),
    headDim: count('head_dim', type === 'qwen3' ? 128 : hiddenSize / heads),
    intermediateSize: count('intermediate_size'),
    ropeTheta: typeof theta === 'number' ? theta : Number.NaN,
    rmsNormEps: count('rms_norm_eps', 1e-6),
    tieWordEmbeddings: json['tie_word_embeddings'] === true,
    qkNorm: type === 'qwen3',
    contextLength: count('max_position_embeddings'),
  }
  if (problems.length === 0) problems.push(...modelConfigProblems(config))
  if (problems.length > 0)
    throw new TrainError('CONFIG_INVALID', `${path} cannot be run here: ${problems.join(' ')}`, { details: { path, problems } })
  return config
}

/** Reads a JSON object from a file; `fallback` replaces an absent file. Rejects with CONFIG_INVALID. */
export async function readJsonObject(path: string, fallback?: Record<string, unknown>): Promise<Record<string, unknown>> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if (fallback && (cause as NodeJS.ErrnoException).code === 'ENOENT') return fallback
    throw new TrainError('CONFIG_INVALID', `${path} cannot be read; a model folder holds ${companionFiles.slice(0, 4).join(', ')}.`, {
      cause,
    })
  }
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch (cause) {
    throw new TrainError('CONFIG_INVALID', `${path} is not valid JSON; write the file again.`, { cause })
  }
  throw new TrainError('CONFIG_INVALID', `${path} does not hold a JSON object; write the file again.`)
}

const toIds = (value: unknown): number[] => (Array.isArray(value) ? value : [value]).filter((id) => Number.isSafeInteger(id) && id >= 0)

const idOrIds = (ids: readonly number[]): number | readonly number[] | null => (ids.length === 1 ? ids[0]! : ids.length === 0 ? null : ids)
