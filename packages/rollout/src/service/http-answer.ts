import type { ServerResponse } from 'node:http'
import { type ErrorCode, TrainError } from '@aworld-train/core'

const statuses: Partial<Record<ErrorCode, number>> = {
  SERVICE_UNAUTHORIZED: 401,
  ROLLOUT_INVALID: 400,
  ROLLOUT_UNKNOWN: 404,
  ROLLOUT_CONFLICT: 409,
  ROLLOUT_QUEUE_FULL: 503,
  ROLLOUT_CANCELLED: 503,
}

/** The error for a request that must be corrected before it can be answered. */
export function invalidRequest(message: string, status = 400): TrainError {
  return new TrainError('ROLLOUT_INVALID', message, { details: { status } })
}

/** Throws ROLLOUT_INVALID for a method that a path does not have. */
export function checkMethod(path: string, method: string | undefined, methods: readonly string[]): void {
  if (method !== undefined && methods.includes(method)) return
  const allow = methods.join(', ')
  throw new TrainError('ROLLOUT_INVALID', `${path.slice(0, 200)} answers ${allow}, not ${method}.`, { details: { status: 405, allow } })
}

export function sendJson(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

/** Answers with `{"error": …}` as an ErrorRecord. No answer names a time to come back, because nobody knows when a queue has room. */
export function sendError(response: ServerResponse, error: TrainError): void {
  const { details, ...record } = error.toRecord()
  const named = details?.['status']
  const status = typeof named === 'number' ? named : (statuses[error.code] ?? 500)
  sendJson(response, status, JSON.stringify({ error: record }), {
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(typeof details?.['allow'] === 'string' && { allow: details['allow'] }),
  })
}
