import { TrainError } from '@aworld-train/core'
import { z } from 'zod'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'

const Options = z.strictObject({
  /**
   * `openai` is any OpenAI-compatible endpoint. `policy` (AWorld: `verl`) is the model in training. `gateway` is the gateway's model that
   * `llmModelName` names: it is recorded and budgeted, and the agent does not know its key.
   */
  llmProvider: z.string().optional(),
  llmModelName: z.string().optional(),
  /** Base URL ending in `/v1`. Without one the agent uses the policy in training. An empty one is an error of the program. */
  llmBaseUrl: z.string().optional(),
  llmApiKey: z.string().optional(),
  llmTemperature: z.number().min(0).optional(),
  topP: z.number().gt(0).max(1).optional(),
  topK: z.int().min(0).optional(),
  maxTokens: z.int().min(1).optional(),
  stop: z.array(z.string().min(1)).optional(),
  seed: z.int().optional(),
  /** Most model calls of one run of the agent. */
  maxSteps: z.int().min(1).optional(),
  /** Most repetitions after a refusal (429, 503) or a failed connection. Calls to the policy in training are never repeated. */
  maxRetries: z.int().min(0).optional(),
  systemPrompt: z.string().optional(),
  /** Further fields of the request body. */
  params: z.record(z.string(), z.unknown()).optional(),
})

export type AgentConfigFields = z.infer<typeof Options>

export type AgentConfigOptions = EitherCase<AgentConfigFields> & {
  /** AWorld's nested form of the model fields. */
  readonly llmConfig?: AgentConfigOptions
  readonly llm_config?: AgentConfigOptions
}

const withoutEffect = [
  'llmClientType',
  'llmSyncEnabled',
  'llmAsyncEnabled',
  'llmStreamCall',
  'maxModelLen',
  'maxInputTokens',
  'maxActionsPerStep',
  'modelType',
  'needReset',
  'exitOnFailure',
  'enableRecording',
  'workingDir',
  'contextCache',
  'concurrentBatchSize',
  'useVision',
  'name',
]

const refused = {
  memoryConfig: 'the whole history is sent with every call, because summaries and offloading would change what is trained.',
  useToolsInPrompt: 'tools are sent in the request, and the chat template of the model writes them into the prompt.',
  systemPromptTemplate: 'set "systemPrompt" to the finished text.',
  humanTools: 'give the agent a tool() that asks.',
  skillConfigs: 'put the text of the skill into "systemPrompt".',
  ptcTools: 'give the agent a tool() instead.',
  llmResponseParser: 'change the reply in an afterModel hook.',
  extConfig: 'put further fields of the request body into "params".',
  ext: 'put further fields of the request body into "params".',
}

/** Providers whose model is the one in training, wherever the address points. AWorld calls it `verl`. */
const policyProviders: readonly string[] = ['policy', 'verl']
const gatewayProvider = 'gateway'
const endpointProviders: readonly string[] = ['openai', 'openai-compatible', 'auto']

const optionNames = Object.keys(Options.shape)

/** Options that locate a model. */
const placeOptions = ['llmProvider', 'llmBaseUrl', 'llmModelName', 'llmApiKey'] as const

/** Name of the policy in `AworldAgentLoop`. */
const policyModelName = 'policy'

/** Location and sampling of an agent's model. Keys are in camelCase or snake_case; an unknown key throws CONFIG_INVALID. */
export class AgentConfig {
  readonly fields: AgentConfigFields
  /** AWorld's keys among these options that have no effect here. */
  readonly ignored: readonly string[]
  /** Options of the model that were written but are empty, as an unset variable leaves them. */
  readonly #empty: readonly string[]

  constructor(input: AgentConfigOptions | AgentConfig = {}) {
    if (input instanceof AgentConfig) {
      this.fields = input.fields
      this.ignored = input.ignored
      this.#empty = input.#empty
      return
    }
    const names = { owner: 'AgentConfig', optionNames: [...optionNames, 'llmConfig'], withoutEffect, refused }
    const outer = readNamedOptions(input, names)
    const { llmConfig, ...flat } = outer.options
    const inner =
      llmConfig === undefined
        ? { options: {}, ignored: [], blank: [] }
        : readNamedOptions(llmConfig, { ...names, owner: 'llmConfig', optionNames })
    const parsed = Options.safeParse({ ...inner.options, ...flat })
    if (!parsed.success) {
      const [issue] = parsed.error.issues
      const path = issue!.path.join('.')
      const value = { ...inner.options, ...flat }[String(issue!.path[0])]
      throw new TrainError('CONFIG_INVALID', `AgentConfig: "${path}" is ${describeValue(value)}; ${issue!.message}.`)
    }
    this.fields = parsed.data
    this.ignored = [...outer.ignored, ...inner.ignored]
    this.#empty = placeOptions.filter((name) => {
      const value = this.fields[name]
      return value === undefined ? [...outer.blank, ...inner.blank].includes(name) : value.trim() === ''
    })
    checkProvider(this.fields.llmProvider)
    checkBaseUrl(this.llmBaseUrl)
    checkGatewayModel(this)
  }

  get llmProvider(): string | undefined {
    return this.fields.llmProvider
  }

  get llmModelName(): string | undefined {
    return this.fields.llmModelName || undefined
  }

  /** The agent's own endpoint without a trailing slash; `undefined` when it has none. */
  get llmBaseUrl(): string | undefined {
    return this.fields.llmBaseUrl?.trim().replace(/\/+$/, '') || undefined
  }

  get llmApiKey(): string | undefined {
    return this.fields.llmApiKey || undefined
  }

  get llmTemperature(): number | undefined {
    return this.fields.llmTemperature
  }

  get maxSteps(): number | undefined {
    return this.fields.maxSteps
  }

  /** Whether the model is the policy in training: no endpoint of its own, a provider that says so, or one of `policyBaseUrls`. */
  isTrainable(policyBaseUrls: readonly string[] = []): boolean {
    const { llmProvider, llmBaseUrl } = this
    if (llmProvider === gatewayProvider) return false
    if (llmProvider !== undefined && policyProviders.includes(llmProvider)) return true
    return llmBaseUrl === undefined || policyBaseUrls.some((url) => url.replace(/\/+$/, '') === llmBaseUrl)
  }

  /** Reasons, in words, why an agent that would be trained by default may be meant to be frozen; `null` if there are none. */
  frozenSigns(): string | null {
    const { llmProvider, llmBaseUrl, llmModelName, llmApiKey } = this
    if (llmBaseUrl !== undefined || llmProvider === gatewayProvider || policyProviders.includes(llmProvider ?? '')) return null
    const signs = [
      ...this.#empty.map((name) => `an empty ${name}`),
      ...(llmProvider?.startsWith('openai') ? [`llmProvider "${llmProvider}"`] : []),
      ...(llmModelName === undefined || llmModelName === policyModelName ? [] : [`llmModelName "${llmModelName}"`]),
      ...(llmApiKey === undefined ? [] : ['an llmApiKey']),
    ]
    return signs.length === 0 ? null : signs.join(', ')
  }

  /** Name of the gateway's model that this agent uses; `undefined` for the policy in training and for endpoints of its own. */
  get gatewayModel(): string | undefined {
    return this.llmProvider === gatewayProvider ? this.llmModelName : undefined
  }

  /** Name of the policy that this agent asks for, where a training has several. */
  get policyModel(): string | undefined {
    return policyProviders.includes(this.llmProvider ?? '') && this.llmBaseUrl === undefined ? this.llmModelName : undefined
  }

  /** Sampling fields of a request body that were set, under their names on the wire. */
  requestFields(): Record<string, unknown> {
    const { llmTemperature, topP, topK, maxTokens, stop, seed, params } = this.fields
    const fields = { temperature: llmTemperature, top_p: topP, top_k: topK, max_tokens: maxTokens, stop, seed }
    return { ...params, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) }
  }
}

function checkProvider(provider: string | undefined): void {
  const providers = [gatewayProvider, ...policyProviders, ...endpointProviders]
  if (provider === undefined || provider === '' || providers.includes(provider)) return
  throw new TrainError(
    'CONFIG_INVALID',
    `AgentConfig: llmProvider "${provider}" is unknown; use "openai" with the llmBaseUrl of an OpenAI-compatible endpoint, "policy" for the model in training, or "gateway" for one of the gateway's models.`,
  )
}

function checkGatewayModel({ llmProvider, llmModelName, llmBaseUrl }: AgentConfig): void {
  if (llmProvider !== gatewayProvider) return
  if (llmModelName === undefined) {
    throw new TrainError('CONFIG_INVALID', 'AgentConfig: llmProvider is "gateway"; set llmModelName to one of the gateway\'s models.')
  }
  if (llmBaseUrl !== undefined) {
    throw new TrainError('CONFIG_INVALID', 'AgentConfig: llmProvider is "gateway", which has its own address; leave llmBaseUrl out.')
  }
}

function checkBaseUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) return
  throw new TrainError('CONFIG_INVALID', `AgentConfig: llmBaseUrl "${url}" is not an http(s) URL; write it as http://host:port/v1.`)
}
