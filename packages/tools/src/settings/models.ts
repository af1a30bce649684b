import { type Outward, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../json-answer.ts'
import type { ModelRole, ToolModel } from '../tool-server.ts'

/** The model of a role, as its three variables describe it. */
export interface ModelSettings {
  /** Base URL of a Chat Completions API, `…/v1`. */
  readonly baseUrl: string
  readonly model: string
  readonly apiKey?: string | undefined
}

/** Name of the service for the model of a role. */
export const modelService = (role: ModelRole): string => `${role}-model`

/** The model of a role; `null` if its base URL or name is not set. */
export function modelSettings(values: ReadonlyMap<string, string>, role: ModelRole): ModelSettings | null {
  const prefix = `${role.toUpperCase()}_LLM`
  const baseUrl = values.get(`${prefix}_BASE_URL`)
  const model = values.get(`${prefix}_MODEL_NAME`)
  return baseUrl === undefined || model === undefined ? null : { baseUrl, model, apiKey: values.get(`${prefix}_API_KEY`) }
}

/** The used part of a chat completion. */
const completion = z.object({ choices: z.tuple([z.object({ message: z.object({ content: z.string().min(1) }) })], z.unknown()) })

/** How long a model may think about one answer. */
const modelTimeoutMs = 120_000

/**
 * Opens the model of a role through the services of `outward`, which add its key. Rejects with a ToolError if the role is not configured.
 * `complete` does so if the model answers with an error, with the status and the beginning of the answer.
 */
export async function openToolModel(
  role: ModelRole,
  settings: ModelSettings | null,
  outward: Outward,
  signal: AbortSignal,
): Promise<ToolModel> {
  if (settings === null) {
    const prefix = `${role.toUpperCase()}_LLM`
    throw new ToolError(`No model is configured for this tool. Its operator sets ${prefix}_BASE_URL and ${prefix}_MODEL_NAME.`)
  }
  return {
    name: settings.model,
    async complete({ system, user, temperature }) {
      const messages = [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ]
      const response = await outward.service(
        modelService(role),
        '/chat/completions',
        {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model: settings.model, messages, temperature }),
          timeoutMs: modelTimeoutMs,
        },
        signal,
      )
      return jsonAnswer(`The model ${settings.model}`, response, completion).choices[0].message.content
    },
  }
}
