import { createHash } from 'node:crypto'
import { type Outward, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../json-answer.ts'
import type { ModelPart, ModelRole, ToolModel } from '../tool-server.ts'

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

const transcription = z.object({ text: z.string() })

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
  const { model } = settings
  async function ask<Schema extends z.ZodType>(path: string, contentType: string, body: string | Buffer, schema: Schema) {
    const request = { method: 'POST', headers: { 'content-type': contentType }, body, timeoutMs: modelTimeoutMs } as const
    return jsonAnswer(`The model ${model}`, await outward.service(modelService(role), path, request, signal), schema)
  }
  return {
    name: model,
    chat: (body) => ask('/chat/completions', 'application/json', body, z.unknown()),
    async complete({ system, user, temperature }) {
      const messages = [
        { role: 'system', content: system },
        { role: 'user', content: typeof user === 'string' ? user : user.map(toContentPart) },
      ]
      const body = JSON.stringify({ model, messages, temperature })
      return (await ask('/chat/completions', 'application/json', body, completion)).choices[0].message.content
    },
    async transcribe({ name, bytes }) {
      const { contentType, body } = toForm({ model, response_format: 'json' }, { name, bytes })
      return (await ask('/audio/transcriptions', contentType, body, transcription)).text
    },
  }
}

const toContentPart = (part: ModelPart) =>
  'text' in part
    ? { type: 'text', text: part.text }
    : { type: 'image_url', image_url: { url: `data:${part.mediaType};base64,${part.image.toString('base64')}` } }

/** Encodes fields and a file as a form. Its boundary follows from the file, so that a recorded answer is found again. */
function toForm(fields: Readonly<Record<string, string>>, { name, bytes }: { readonly name: string; readonly bytes: Buffer }) {
  const boundary = createHash('sha256').update(bytes).digest('hex')
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}`
  const texts = Object.entries(fields).map(([field, value]) => `${part(`name="${field}"`)}\r\n\r\n${value}\r\n`)
  const head = `${texts.join('')}${part(`name="file"; filename="${name}"`)}\r\ncontent-type: application/octet-stream\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  }
}
