import { errorMessage, isRecord, TrainError } from '@aworld-train/core'
import { type AdminAnswer, createAdmin } from './http/admin.ts'
import { messageOf } from './http/server-error.ts'

/** Programs that name themselves in the list of their models. */
export type ModelServerName = 'vllm' | 'sglang' | 'llama.cpp'

/** What serves models at an address, as it says itself. */
export interface ModelServerFacts {
  /** The base URL under which it answers: the one that was given, or that with `/v1` behind it. */
  readonly baseUrl: string
  /** `null` for a provider, a proxy, and any server that does not name itself. */
  readonly server: ModelServerName | null
  /** Its models; `null` where it has no list. */
  readonly models: readonly ListedModelFacts[] | null
  /** Whether the list has the model that was asked about; `null` without a list. Providers may serve names that they do not list. */
  readonly hasModel: boolean | null
}

export interface ListedModelFacts {
  readonly name: string
  /** Tokens of its context; `null` where the list has none. */
  readonly contextLength: number | null
}

export interface ProbeModelServerOptions {
  /** The name of the model that is asked about. */
  readonly model: string
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined
  /** Further headers, such as `x-api-key` and `anthropic-version`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal: AbortSignal
  /** Longest time for an answer. Default 10,000. */
  readonly timeoutMs?: number | undefined
}

/** `owned_by` in the entries of a list, by the program that writes it. */
const owners: ReadonlyMap<unknown, ModelServerName> = new Map([
  ['vllm', 'vllm'],
  ['sglang', 'sglang'],
  ['llamacpp', 'llama.cpp'],
])

/** Statuses for a key that is wanted or refused. */
const keyStatuses: ReadonlySet<number> = new Set([401, 403])

const lengthOf = (value: unknown): number | null => (Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : null)

/** The entries of a list; `null` for an answer that is no list of models. */
function entriesOf({ status, json }: AdminAnswer): Record<string, unknown>[] | null {
  const data = status === 200 && isRecord(json) ? json['data'] : undefined
  return Array.isArray(data) ? data.filter(isRecord).filter(({ id }) => typeof id === 'string') : null
}

function toModels({ id, aliases, max_model_len: maxModelLength, meta }: Record<string, unknown>): ListedModelFacts[] {
  const contextLength = lengthOf(maxModelLength) ?? lengthOf(isRecord(meta) ? meta['n_ctx'] : undefined)
  const others = Array.isArray(aliases) ? aliases.filter((alias) => typeof alias === 'string' && alias !== id) : []
  return [id as string, ...(others as string[])].map((name) => ({ name, contextLength }))
}

/** Throws FROZEN_MODEL_FAILED for an answer after which no call of a model can succeed. */
function checkAnswer(url: string, { status, text, json }: AdminAnswer, hasKey: boolean): void {
  const failed = (what: string, remedy: string) => {
    throw new TrainError('FROZEN_MODEL_FAILED', `${url} ${what}; ${remedy}.`, { details: { server: url, status } })
  }
  if (status >= 300 && status < 400) failed(`answered ${status}, a redirection`, 'give the address that it leads to')
  if (keyStatuses.has(status)) {
    failed(`answered ${status}: ${messageOf(text).slice(0, 300)}`, hasKey ? 'check its key' : 'it wants a key; give it one')
  }
  if (status === 200 && json === undefined) {
    const beginning = text.replace(/\s+/g, ' ').trim().slice(0, 100)
    failed(`answered no JSON: ${JSON.stringify(beginning)}`, 'check the address: that of an API mostly ends with /v1')
  }
}

/**
 * Asks the list of models, `GET {baseUrl}/models`, what serves at an address. vLLM, SGLang and llama.cpp write their names into `owned_by`
 * (vllm/entrypoints/openai/engine/protocol.py, sglang/srt/entrypoints/openai/protocol.py, llama.cpp tools/server/server-context.cpp), the
 * first two the length of the context into `max_model_len`. An address without a list is one of a server that does not name itself. Without
 * `/v1` at its end, the address is tried with it too. Rejects with POLICY_UNAVAILABLE if nobody answers, with FROZEN_MODEL_FAILED for a
 * redirection, a web page or a key that is wanted or refused, with CONFIG_INVALID for an address that is none, and with the signal's reason.
 */
export async function probeModelServer(
  baseUrl: string,
  { model, apiKey, headers = {}, signal, timeoutMs = 10_000 }: ProbeModelServerOptions,
): Promise<ModelServerFacts> {
  const address = URL.parse(baseUrl)
  if (!address || !/^https?:$/.test(address.protocol))
    throw new TrainError('CONFIG_INVALID', `${JSON.stringify(baseUrl)} is no address of a model; write it as http://host:port/v1.`)
  const path = address.pathname.replace(/\/+$/, '')
  const admin = createAdmin({
    url: address.origin,
    headers: { ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }), ...headers },
    connectTimeoutMs: timeoutMs,
    keepAliveMs: 1_000,
  })
  const ask = (base: string) => admin.call(`${base}/models${address.search}`, { method: 'GET', timeoutMs, signal })
  try {
    let base = path
    let answer = await ask(base)
    if (entriesOf(answer) === null && !/\/v\d+\w*$/.test(path)) {
      const other = await ask(`${path}/v1`)
      if (entriesOf(other) !== null || keyStatuses.has(other.status)) [base, answer] = [`${path}/v1`, other]
    }
    checkAnswer(`${address.origin}${base}`, answer, apiKey !== undefined || Object.keys(headers).length > 0)
    const entries = entriesOf(answer)
    const models = entries?.flatMap(toModels) ?? null
    return {
      baseUrl: `${address.origin}${base}${address.search}`,
      server: entries?.map(({ owned_by: owner }) => owners.get(owner)).find((name) => name !== undefined) ?? null,
      models,
      // Google lists its models below "models/".
      hasModel: models?.some(({ name }) => name === model || name === `models/${model}`) ?? null,
    }
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof TrainError) throw cause
    throw new TrainError('POLICY_UNAVAILABLE', `${baseUrl} cannot be asked for its models: ${errorMessage(cause)}; check the address.`, {
      cause,
    })
  } finally {
    await admin.close()
  }
}
