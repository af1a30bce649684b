import { type OutwardResponse, ToolError } from '@aworld-train/core'
import type { z } from 'zod'

/**
 * Reads the JSON in a service's answer. Throws a ToolError with the service's own message if it refuses, or if its answer has another form.
 */
export function jsonAnswer<Schema extends z.ZodType>(
  service: string,
  { status, bytes }: OutwardResponse,
  schema: Schema,
): z.output<Schema> {
  const text = bytes.toString('utf8')
  if (status < 200 || status >= 300) throw new ToolError(`${service} answered with status ${status}: ${words(text)}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ToolError(`${service} answered with something that is no JSON: ${words(text)}`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new ToolError(`${service} answered in a form that is not understood ("${issue!.path.join('.')}": ${issue!.message}).`)
}

/** The beginning of an unexpected answer. */
const words = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, 300) || 'nothing'
