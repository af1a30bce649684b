import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ModelDescription } from '../contracts/token-engine.ts'
import { TrainError } from '../protocol/errors.ts'

type Json = Readonly<Record<string, unknown>>

async function readJson(file: string): Promise<Json | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Json
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new TrainError('CONFIG_INVALID', `${file} cannot be read: ${cause instanceof Error ? cause.message : cause}.`, { cause })
  }
}

const numberIn = (config: Json, name: string) => (typeof config[name] === 'number' ? config[name] : undefined)
const idsIn = (config: Json | null) => [config?.['eos_token_id']].flat().filter((id): id is number => typeof id === 'number')

export interface DescribeModelOptions {
  readonly name: string
  /** A Hugging Face folder. */
  readonly directory: string
  /** Context length that replaces the one in config.json. */
  readonly contextLength?: number | null | undefined
}

/** Describes a model from its files, without its weights. Rejects with CONFIG_INVALID naming the missing part. */
export async function describeModel({ name, directory, contextLength }: DescribeModelOptions): Promise<ModelDescription> {
  const file = join(directory, 'config.json')
  const config = await readJson(file)
  if (!config) throw new TrainError('CONFIG_INVALID', `There is no ${file}; name the Hugging Face folder of model "${name}".`)
  // Models that read images have their text settings in a section of their own.
  const text = (config['text_config'] as Json | undefined) ?? config
  const length = contextLength ?? numberIn(text, 'max_position_embeddings')
  const vocabularySize = numberIn(text, 'vocab_size')
  if (length === undefined || vocabularySize === undefined) {
    const missing = length === undefined ? 'max_position_embeddings' : 'vocab_size'
    throw new TrainError('CONFIG_INVALID', `${file} has no "${missing}"${length === undefined ? '; set contextLength' : ''}.`)
  }
  const generation = idsIn(await readJson(join(directory, 'generation_config.json')))
  const stopTokenIds = generation.length > 0 ? generation : idsIn(text).length > 0 ? idsIn(text) : idsIn(config)
  if (stopTokenIds.length === 0)
    throw new TrainError('CONFIG_INVALID', `Neither generation_config.json nor config.json in ${directory} has an "eos_token_id"; add it.`)
  return { name, directory, contextLength: length, vocabularySize, stopTokenIds }
}
