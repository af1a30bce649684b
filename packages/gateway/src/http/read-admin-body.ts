import type { IncomingMessage, ServerResponse } from 'node:http'
import { BodyError, readBody } from '@aworld-train/http'
import { badRequest } from '../failure.ts'

interface Problem {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/** A Zod schema. */
export interface JsonSchema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: { readonly issues: readonly Problem[] } }
}

export interface ReadAdminBodyOptions<T> {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly schema: JsonSchema<T>
  /** Text before the problems of a body, such as `The session cannot be opened.` */
  readonly what: string
}

/** A request of the admin API is a page of text. The list of agents is its largest part. */
const maxBodyBytes = 1024 * 1024
const shownProblems = 5

/** Reads the body of a request by its schema. An empty body is an empty object. Rejects with GATEWAY_BAD_REQUEST. */
export async function readAdminBody<T>({ request, response, schema, what }: ReadAdminBodyOptions<T>): Promise<T> {
  let body: Buffer
  try {
    body = await readBody(request, response, maxBodyBytes)
  } catch (cause) {
    if (!(cause instanceof BodyError)) throw cause
    throw badRequest(`${cause.message}.`, null, cause.reason === 'too-large' ? 413 : 400)
  }
  let json: unknown
  try {
    json = body.length === 0 ? {} : JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw badRequest(`The body is not valid JSON: ${cause instanceof Error ? cause.message : cause}. Send an object, or nothing.`)
  }
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.slice(0, shownProblems)
  const text = problems.map(({ path, message }) => `${path.join('.') || 'the body'}: ${message}`).join('; ')
  throw badRequest(`${what} ${text}.`, problems[0]!.path.join('.') || null)
}
