import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { type ModelConfig, modelConfigProblems } from '../model-config.ts'
import { createParameterTable, type Parameter } from '../parameter-table.ts'
import { normal, streamOf } from '../random.ts'
import { addedTokenId, type TokenizerJson, tokenizerSize, toTokenizerConfig } from '../tokenizer/tokenizer-json.ts'
import { toGenerationConfig, toHuggingFaceConfig } from './model-files.ts'
import { type Tensor, writeSafetensors } from './safetensors.ts'
import { writeFolderWhole } from './whole-folder.ts'

export interface InitModelOptions {
  /** Shape of the model. The size of the vocabulary is the tokenizer's. */
  readonly config: Omit<ModelConfig, 'vocabularySize'>
  readonly tokenizer: TokenizerJson
  /** Jinja text that renders a conversation. */
  readonly chatTemplate: string
  readonly seed: number
  /** Texts of special tokens that end a completion; default `<|im_end|>`. */
  readonly stopTokens?: readonly string[] | undefined
  /** Standard deviation of the weights; default 0.05. */
  readonly initStd?: number | undefined
  /** Factor on the projections that write into the residual stream (attention output, down); default 0.7. */
  readonly residualScale?: number | undefined
}

/**
 * Makes a model folder of random weights, N(0, initStd²), with norms of 1. The same options give the same bytes. Throws CONFIG_INVALID for
 * an impossible shape or an unknown stop token.
 */
export async function initModel(directory: string, options: InitModelOptions): Promise<ModelConfig> {
  const { tokenizer, chatTemplate, seed, stopTokens = ['<|im_end|>'], initStd = 0.05, residualScale = 0.7 } = options
  const config: ModelConfig = { ...options.config, vocabularySize: tokenizerSize(tokenizer) }
  const problems = modelConfigProblems(config)
  if (problems.length > 0)
    throw new TrainError('CONFIG_INVALID', `The model cannot be made: ${problems.join(' ')}`, { details: { problems } })
  const stopIds = stopTokens.map((token) => {
    const id = addedTokenId(tokenizer, token)
    if (id === undefined)
      throw new TrainError('CONFIG_INVALID', `The tokenizer has no token "${token}" to stop at; add it to its special tokens.`)
    return id
  })
  const endToken = stopTokens[0] ?? null
  const { parameters } = createParameterTable(config)
  const tensors = parameters.map((parameter): [string, Tensor] => [
    parameter.name,
    { shape: parameter.shape, data: initialValues(parameter, { seed, initStd, residualScale }) },
  ])
  const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
  const texts: Record<string, string> = {
    'config.json': json(toHuggingFaceConfig(config, stopIds, stopIds[0] ?? null)),
    'generation_config.json': json(toGenerationConfig(stopIds, stopIds[0] ?? null)),
    'tokenizer.json': json(tokenizer),
    'tokenizer_config.json': json(toTokenizerConfig(endToken, endToken, config.contextLength)),
    'chat_template.jinja': chatTemplate,
  }
  await mkdir(join(directory, '..'), { recursive: true })
  await writeFolderWhole(directory, async (folder) => {
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text, { flush: true })
    await writeSafetensors(join(folder, 'model.safetensors'), tensors, { format: 'pt' })
  })
  return config
}

function initialValues(
  { name, size }: Parameter,
  { seed, initStd, residualScale }: { seed: number; initStd: number; residualScale: number },
): Float32Array {
  if (name.endsWith('norm.weight')) return new Float32Array(size).fill(1)
  const std = /(o_proj|down_proj)\.weight$/.test(name) ? initStd * residualScale : initStd
  const [high, low] = streamOf(['init', seed, name])
  const values = new Float32Array(size)
  for (let i = 0; i < size; i++) values[i] = std * normal(high, low, i)
  return values
}
