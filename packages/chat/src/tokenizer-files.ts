import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord, TrainError } from '@aworld-train/core'

/** The files of a Hugging Face folder that define how text becomes ids. */
export interface TokenizerFiles {
  readonly directory: string
  readonly tokenizerText: string
  readonly tokenizerConfig: Readonly<Record<string, unknown>>
  readonly template: string
  readonly toolUseTemplate: string | null
  readonly specialTokens: Readonly<Record<string, string>>
  /** Ids of generation_config.json and config.json that end a completion. */
  readonly endIds: readonly number[]
}

/** Reads a Hugging Face folder. Throws TEMPLATE_UNSUPPORTED that names the missing or invalid file. */
export async function readTokenizerFiles(directory: string): Promise<TokenizerFiles> {
  const tokenizerText = await readText(directory, 'tokenizer.json')
  if (tokenizerText === null) throw missing(directory, 'tokenizer.json')
  const tokenizerConfig = (await readObject(directory, 'tokenizer_config.json')) ?? {}
  const templateFile = await readText(directory, 'chat_template.jinja')
  const toolUseFile = await readText(directory, join('additional_chat_templates', 'tool_use.jinja'))
  const processor = (await readObject(directory, 'chat_template.json')) ?? {}
  const named = namedTemplates(tokenizerConfig['chat_template'] ?? processor['chat_template'])
  const template = templateFile ?? named.get('default') ?? null
  if (template === null) throw missing(directory, namelessTemplate([...named.keys()]))
  const endIds = [await readObject(directory, 'generation_config.json'), await readObject(directory, 'config.json')].flatMap((config) =>
    idList(config?.['eos_token_id']),
  )
  return {
    directory,
    tokenizerText,
    tokenizerConfig,
    template,
    toolUseTemplate: toolUseFile ?? named.get('tool_use') ?? null,
    specialTokens: { ...tokensIn((await readObject(directory, 'special_tokens_map.json')) ?? {}), ...tokensIn(tokenizerConfig) },
    endIds: [...new Set(endIds)],
  }
}

/** Reads one template, or several in a list: `default` and, for requests with tools, `tool_use`. */
function namedTemplates(value: unknown): ReadonlyMap<string, string> {
  if (typeof value === 'string') return new Map([['default', value]])
  if (!Array.isArray(value)) return new Map()
  return new Map(
    value.flatMap((entry: { name?: unknown; template?: unknown } | null) =>
      typeof entry?.name === 'string' && typeof entry.template === 'string' ? [[entry.name, entry.template] as const] : [],
    ),
  )
}

function namelessTemplate(names: readonly string[]): string {
  if (names.length === 0) return 'chat_template.jinja, or "chat_template" in tokenizer_config.json'
  return `template named "default" among its templates ${names.map((name) => `"${name}"`).join(', ')}`
}

function tokensIn(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {}
  for (const [name, value] of Object.entries(config)) {
    if (!name.endsWith('_token')) continue
    const content = typeof value === 'object' && value !== null ? (value as { content?: unknown }).content : value
    if (typeof content === 'string') tokens[name] = content
  }
  return tokens
}

function idList(value: unknown): number[] {
  return (Array.isArray(value) ? value : [value]).filter((id): id is number => typeof id === 'number')
}

async function readObject(directory: string, file: string): Promise<Record<string, unknown> | null> {
  const text = await readText(directory, file)
  if (text === null) return null
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch (cause) {
    throw new TrainError('TEMPLATE_UNSUPPORTED', `${join(directory, file)} is not JSON; download the model folder again.`, { cause })
  }
  throw new TrainError('TEMPLATE_UNSUPPORTED', `${join(directory, file)} is not a JSON object; download the model folder again.`)
}

async function readText(directory: string, file: string): Promise<string | null> {
  try {
    return await readFile(join(directory, file), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new TrainError('TEMPLATE_UNSUPPORTED', `${join(directory, file)} cannot be read; check its permissions.`, { cause: error })
  }
}

function missing(directory: string, file: string): TrainError {
  return new TrainError('TEMPLATE_UNSUPPORTED', `The model folder ${directory} has no ${file}; add it from the model's repository.`)
}
