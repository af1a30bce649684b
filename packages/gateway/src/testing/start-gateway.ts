import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChatModel, chatMlTemplate, type HistoryMode, loadChatModel } from '@aworld-train/chat'
import type { EngineHealth, GenerateRequest, PolicyEndpoint, SessionRequest, TokenEngine } from '@aworld-train/core'
import { type ScriptedCompletion, type ScriptedEngine, scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import OpenAI from 'openai'
import { createGateway } from '../gateway.ts'
import type { TokenRoute } from '../models/routes.ts'
import type { Gateway, GatewayOptions } from '../options.ts'

/** The policy's next answer: text followed by a stop token, or ids. */
export type Say = string | (Partial<ScriptedCompletion> & { readonly text: string; readonly stop?: boolean })

export interface StartOptions
  extends Partial<
    Pick<
      GatewayOptions,
      | 'limits'
      | 'hostedTools'
      | 'trainedCalls'
      | 'aliases'
      | 'ignore'
      | 'logger'
      | 'onWarning'
      | 'seed'
      | 'admin'
      | 'tls'
      | 'insecure'
      | 'host'
      | 'port'
      | 'publicUrl'
      | 'maxPauseMs'
    >
  > {
  /** Answers of the policy. Those of a list are given in order of arrival. */
  readonly say: readonly Say[] | ((request: GenerateRequest, call: number) => Say | Promise<Say>)
  readonly contextLength?: number
  readonly maxPromptBytes?: number
  readonly toolAnswers?: TokenRoute['toolAnswers']
  readonly malformedCalls?: TokenRoute['malformedCalls']
  /** ChatML by default. */
  readonly template?: string
  readonly history?: HistoryMode
  /** Kinds of constraints that the engine says it enforces; none by default. */
  readonly constraints?: TokenEngine['constraints']
  /** The engine's report on itself. */
  readonly health?: () => EngineHealth
}

export interface Started extends AsyncDisposable {
  readonly gateway: Gateway
  readonly engine: ScriptedEngine
  readonly chat: ChatModel
}

/** A gateway on a real port in front of a scripted engine, with a real tokenizer and template. Disposing of it disposes of all. */
export async function startGateway(startOptions: StartOptions): Promise<Started> {
  const { say, contextLength, maxPromptBytes, toolAnswers, malformedCalls, ...more } = startOptions
  const { health, constraints, template = chatMlTemplate, history, seed = 1, ...options } = more
  const directory = await mkdtemp(join(tmpdir(), 'gateway-test-'))
  const model = await writeTinyModel({ directory, template, ...(contextLength !== undefined && { contextLength }) })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds, history })
  const toCompletion = (reply: Say): ScriptedCompletion => {
    const { text, stop = true, ...rest } = typeof reply === 'string' ? { text: reply } : reply
    return { tokenIds: [...chat.encode(text), ...(stop ? model.stopTokenIds : [])], ...rest }
  }
  const engine = scriptedEngine({
    model,
    script: typeof say === 'function' ? async (request, call) => toCompletion(await say(request, call)) : say.map(toCompletion),
  })
  const end = async (): Promise<void> => {
    await engine.close()
    await rm(directory, { recursive: true })
  }
  const gateway = await createGateway({
    models: {
      [model.name]: {
        kind: 'token',
        engine: { ...engine, constraints, ...(health && { health }) },
        chat,
        maxPromptBytes,
        toolAnswers,
        malformedCalls,
      },
    },
    aliases: { '*': model.name },
    seed,
    ...options,
  }).catch(async (error: unknown) => {
    await end()
    throw error
  })
  return {
    gateway,
    engine,
    chat,
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await end()
    },
  }
}

/** A session request with one agent, named `agent`. */
export function sessionRequest(overrides: Partial<SessionRequest> = {}): SessionRequest {
  return {
    rollout: 'rollout-1',
    attempt: 0,
    taskId: 'task-1',
    sample: 0,
    policy: 'local',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 },
    agents: [{ name: 'agent', trainable: true }],
    ...overrides,
  }
}

/** The openai package's client for an endpoint, without retries. */
export function openaiClient({ baseUrl, apiKey }: PolicyEndpoint): OpenAI {
  return new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 0 })
}

/** Posts a Chat Completions request as it is; a string or bytes are sent unchanged. */
export async function post(endpoint: PolicyEndpoint, body: unknown, init: RequestInit = {}) {
  const raw = typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body)
  const response = await fetch(`${endpoint.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: raw,
    ...init,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
}

/** Waits until `condition` holds, at most a minute. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('The condition did not come true within a minute.')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

export const lookupTool = {
  type: 'function',
  function: {
    name: 'lookup',
    description: 'Looks up an element.',
    parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
} as const

/** A call of the lookup tool, as the policy writes it. */
export const lookupCall = (name: string) => `<tool_call>\n{"name": "lookup", "arguments": {"name": "${name}"}}\n</tool_call>`
