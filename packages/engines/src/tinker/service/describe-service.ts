import { isRecord } from '@aworld-train/core'
import { createTinkerClient, type TinkerClient, type TinkerService } from '../client/tinker-client.ts'
import { wireVersion } from './service-session.ts'

export interface ServiceDescription {
  readonly url: string
  /** Name and version reported by the server; `null` if it reports none. */
  readonly server: string | null
  /** Version of the Python SDK whose protocol is spoken here. */
  readonly wireVersion: string
  readonly models: readonly ServiceModel[]
}

export interface ServiceModel {
  readonly name: string
  readonly contextLength: number | null
}

/** Asks a service for its identity and the models that it trains. Rejects with CONFIG_INVALID or POLICY_UNAVAILABLE. */
export async function describeService(service: TinkerService, signal?: AbortSignal): Promise<ServiceDescription> {
  const client = createTinkerClient(service)
  try {
    const models = await serviceModels(client, signal)
    const root = await client
      .call<Readonly<Record<string, unknown>>>('/', undefined, signal)
      .catch(() => ({}) as Readonly<Record<string, unknown>>)
    const words = [root['name'], root['version']].filter((each) => typeof each === 'string')
    return { url: client.url, server: words.length > 0 ? words.join(' ') : null, wireVersion, models }
  } finally {
    await client.close()
  }
}

/** The models that a service can train. */
export async function serviceModels(client: TinkerClient, signal?: AbortSignal): Promise<ServiceModel[]> {
  const { supported_models: models } = await client.call<{ supported_models?: unknown }>(
    '/api/v1/get_server_capabilities',
    undefined,
    signal,
  )
  const list = Array.isArray(models) ? models.filter(isRecord) : []
  return list.flatMap(({ model_name: name, max_context_length: length, trainable }) =>
    typeof name === 'string' && trainable !== false ? [{ name, contextLength: typeof length === 'number' ? length : null }] : [],
  )
}
