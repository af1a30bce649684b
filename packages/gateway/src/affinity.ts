import { hash } from 'node:crypto'
import type { SessionRequest } from '@aworld-train/core'
import { readObject } from './dialects/read-fields.ts'
import { parseBody } from './stages/parse-body.ts'

/**
 * Calls with the same value stay with one server. Those are the calls of an invocation or, in an endless session that many clients share, the
 * calls that begin with the same question.
 */
export function affinityOf(
  { rollout, attempt, maxKeptTurns }: SessionRequest,
  { id }: { readonly id: string },
  question: () => string,
): string {
  const whole = `${rollout}.${attempt}.${id}`
  if (maxKeptTurns === undefined) return whole
  return `${whole}.${hash('sha256', question(), 'hex').slice(0, 16)}`
}

/** The first message of the user in a body of Chat Completions; '' where there is none. */
export function firstQuestion(body: Buffer): string {
  const { messages } = readObject(parseBody(body).value, 'body')
  const question = Array.isArray(messages) && messages.find((message) => message?.role === 'user')
  return question ? JSON.stringify(question) : ''
}
