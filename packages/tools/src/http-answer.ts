import type { ServerResponse } from 'node:http'
import type { ErrorCode, TrainError } from '@aworld-train/core'

const statuses: Partial<Record<ErrorCode, number>> = {
  LEASE_INVALID: 400,
  HOST_REFUSED: 403,
  LEASE_UNKNOWN: 404,
  LEASE_CONFLICT: 409,
  TOOL_SERVER_DIED: 410,
  FILES_REFUSED: 422,
  LEASE_LIMIT: 503,
  ENVIRONMENT_START_FAILED: 503,
}

/** Headers of an answer that another server of the same name may answer otherwise: the client asks again by a new connection. */
const elsewhere = { 'retry-after': '1', connection: 'close' }

/** Answers in JSON, unless there is an answer already. */
export function sendJson(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return
  const text = JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

/** Answers with `{"error": …}` as an ErrorRecord, or with another body. */
export function sendError(response: ServerResponse, error: TrainError, body?: unknown): void {
  const { details, ...record } = error.toRecord()
  const status = typeof details?.['status'] === 'number' ? details['status'] : (statuses[error.code] ?? 500)
  sendJson(response, status, body ?? { error: record }, {
    ...(typeof details?.['allow'] === 'string' && { allow: details['allow'] }),
    ...(error.code === 'LEASE_LIMIT' && elsewhere),
  })
}
