import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { didYouMean, TrainError } from '@aworld-train/core'
import { probeModelServer } from '@aworld-train/engines/remote'
import { FrozenModelSettings } from '@aworld-train/training'
import { type FoundWeights, findWeights } from './find-weights.ts'
import { noModelName, type ServedTokens, unfinished } from './planned-models.ts'

/** Settings of a model behind an address that no form of it says. */
export interface ModelFlags {
  /** US dollars for a million tokens. */
  readonly price?: FrozenModelSettings['price'] | undefined
  readonly dialect?: FrozenModelSettings['dialect'] | undefined
  /** Environment variable that holds the key. */
  readonly apiKeyEnv?: string | undefined
  readonly exactModel?: boolean | undefined
  /** Folder with the tokenizer and template of a model that vLLM or SGLang serves, to record the tokens that it samples. */
  readonly tokens?: string | undefined
  /** File of recorded answers. It is replayed if it exists. Otherwise it is recorded, and has its name once every rollout has its result. */
  readonly cassette?: string | undefined
}

/** What `--model` names. */
export type ModelForm =
  | { readonly kind: 'frozen'; readonly name: string; readonly settings: FrozenModelSettings }
  | { readonly kind: 'weights'; readonly weights: FoundWeights }
  | { readonly kind: 'served'; readonly served: ServedTokens }
  | { readonly kind: 'none' }

interface Provider {
  readonly baseUrl: string
  /** Environment variable of the SDKs that replaces the address, and what they add to it. */
  readonly baseUrlEnv: string
  readonly suffix: string
  readonly apiKeyEnv: string
  readonly dialect: FrozenModelSettings['dialect']
}

const providers: Readonly<Record<string, Provider>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    baseUrlEnv: 'OPENAI_BASE_URL',
    suffix: '',
    apiKeyEnv: 'OPENAI_API_KEY',
    dialect: 'chat-completions',
  },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    baseUrlEnv: 'ANTHROPIC_BASE_URL',
    suffix: '/v1',
    apiKeyEnv: 'ANTHROPIC_API_KEY',
    dialect: 'messages',
  },
}

const forms =
  'openai:NAME, anthropic:NAME, http://host/v1#NAME, a model folder, a checkpoint or a run, a name in "models" of the configuration, or none for an agent that asks an address of its own'

export interface ModelFormOptions {
  readonly models: Readonly<Record<string, FrozenModelSettings>>
  readonly baseDirectory: string
  readonly flags: ModelFlags
  readonly signal: AbortSignal
}

/** Reads what `--model` says. Throws CONFIG_INVALID for what is none of the forms, and MODULE_INVALID for a folder without weights. */
export async function readModelForm(text: string, options: ModelFormOptions): Promise<ModelForm> {
  const form = await formOf(text, options)
  const unread = unreadFlags(form).filter((name) => options.flags[name] !== undefined)
  if (unread.length === 0) return form
  const names = unread.map((name) => flagNames[name]).join(', ')
  throw new TrainError('CONFIG_INVALID', `${names} has no effect with --model ${text}; leave it out.`)
}

const flagNames: Readonly<Record<keyof ModelFlags, string>> = {
  price: '--price',
  dialect: '--dialect',
  apiKeyEnv: '--key-env',
  exactModel: '--exact-model',
  tokens: '--tokens',
  cassette: '--cassette',
}

/** Flags that a form does not read. */
function unreadFlags({ kind }: ModelForm): readonly (keyof ModelFlags)[] {
  if (kind === 'frozen') return ['tokens']
  return kind === 'served'
    ? ['price', 'dialect', 'exactModel', 'cassette']
    : ['price', 'dialect', 'apiKeyEnv', 'exactModel', 'tokens', 'cassette']
}

async function formOf(text: string, options: ModelFormOptions): Promise<ModelForm> {
  const { models, baseDirectory, flags } = options
  const configured = models[text]
  if (text === noModelName) return { kind: 'none' }
  const settings = settingsOf(flags, baseDirectory)
  if (configured) return frozen(text, { ...configured, ...settings })
  const [, scheme = '', rest = ''] = /^([a-z]+):(?!\/\/)(.*)$/s.exec(text) ?? []
  const provider = providers[scheme]
  if (provider) {
    if (rest === '') throw new TrainError('CONFIG_INVALID', `"${text}" names no model; write for example ${scheme}:NAME.`)
    const address = process.env[provider.baseUrlEnv]?.replace(/\/+$/, '')
    const baseUrl = address ? `${address}${address.endsWith('/v1') ? '' : provider.suffix}` : provider.baseUrl
    return frozen(rest, { baseUrl, model: rest, dialect: provider.dialect, apiKeyEnv: provider.apiKeyEnv, ...settings })
  }
  if (/^https?:\/\//.test(text)) return await atAddress(text, options)
  const folder = resolve(baseDirectory, text)
  if (existsSync(folder)) return { kind: 'weights', weights: findWeights(folder) }
  const names = [...Object.keys(models), ...Object.keys(providers).map((name) => `${name}:`)]
  throw new TrainError('CONFIG_INVALID', `--model ${text} is no model: there is no ${folder}.${didYouMean(text, names)} Give ${forms}.`)
}

/**
 * The model at an address, which is asked what it serves unless recorded answers stand for it. A server that lists one model alone need not
 * be told its name. Throws CONFIG_INVALID for a name that the server does not have, and as `probeModelServer`.
 */
async function atAddress(text: string, { flags, signal, baseDirectory }: ModelFormOptions): Promise<ModelForm> {
  const hash = text.indexOf('#')
  const address = (hash < 0 ? text : text.slice(0, hash)).replace(/\/+$/, '')
  const model = hash < 0 ? '' : text.slice(hash + 1)
  if (!URL.canParse(address))
    throw new TrainError('CONFIG_INVALID', `--model ${text} is no address; write for example http://localhost:8000/v1#NAME.`)
  const { username, password, search } = new URL(address)
  if (`${username}${password}${search}` !== '')
    throw new TrainError(
      'CONFIG_INVALID',
      'The address of --model has a user, a password or a query, which would stand in the files of the run; name the variable of its key with --key-env.',
    )
  const settings = settingsOf(flags, baseDirectory)
  if (settings.mode === 'replay' && model !== '') return frozen(model, { baseUrl: address, model, ...settings })
  const apiKey = flags.apiKeyEnv === undefined ? undefined : process.env[flags.apiKeyEnv]
  if (apiKey === '' || (apiKey === undefined && flags.apiKeyEnv !== undefined))
    throw new TrainError('CONFIG_INVALID', `The key of ${address} is to be had from ${flags.apiKeyEnv}, which is not set; set it.`)
  const { baseUrl, server, models, hasModel } = await probeModelServer(address, { model, apiKey, signal })
  const names = (models ?? []).map(({ name }) => name)
  const at = (found: string): ModelForm => {
    if (flags.tokens === undefined) return frozen(found, { baseUrl, model: found, ...settings })
    if (server === 'vllm' || server === 'sglang')
      return { kind: 'served', served: { name: found, server, baseUrl, folder: resolve(baseDirectory, flags.tokens), apiKey } }
    throw new TrainError(
      'CONFIG_INVALID',
      `--tokens records what vLLM and SGLang sample, and ${baseUrl} is ${server === null ? 'neither' : server}; leave it out.`,
    )
  }
  const shown = names.slice(0, 10).map((name) => `"${name}"`)
  const list = models === null ? 'has no list of models' : `has ${shown.join(', ') || 'none'}`
  if (model === '') {
    if (names.length === 1) return at(names[0]!)
    throw new TrainError('CONFIG_INVALID', `--model ${text} names no model, and the server ${list}; write ${baseUrl}#NAME.`)
  }
  // Providers serve names that they do not list.
  if (hasModel === false && server !== null)
    throw new TrainError('CONFIG_INVALID', `${server} at ${baseUrl} ${list}, and not "${model}".${didYouMean(model, names)}`)
  return at(model)
}

const frozen = (name: string, settings: object): ModelForm => ({ kind: 'frozen', name, settings: FrozenModelSettings.parse(settings) })

/** Settings that flags say. */
function settingsOf({ price, dialect, apiKeyEnv, exactModel, cassette }: ModelFlags, directory: string): Partial<FrozenModelSettings> {
  const recorded = cassette === undefined ? null : resolve(directory, cassette)
  return {
    ...(price !== undefined && { price }),
    ...(dialect !== undefined && { dialect }),
    ...(apiKeyEnv !== undefined && { apiKeyEnv }),
    ...(exactModel !== undefined && { exactModel }),
    ...(recorded !== null &&
      (existsSync(recorded)
        ? { cassette: recorded, mode: 'replay' as const }
        : { cassette: `${recorded}${unfinished}`, mode: 'record' as const })),
  }
}
