import { type ErrorCode, errorCatalogue, type PolicyEndpoint, TrainError } from '@aworld-train/core'
import { APIError } from 'openai'

/**
 * The model's owner: `policy` is in training, `frozen` is a fixed model behind the same gateway, `own` is behind an endpoint of the agent's
 * own. Nothing is sent to the gateway twice.
 */
export type ModelSide = 'policy' | 'frozen' | 'own'

function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error
}

const isCatalogued = (code: unknown): code is ErrorCode => typeof code === 'string' && Object.hasOwn(errorCatalogue, code)

function codeOf(status: number, code: unknown, throughGateway: boolean): ErrorCode {
  const name = typeof code === 'string' ? code.toUpperCase() : code
  if (isCatalogued(name)) return name
  if (code === 'context_length_exceeded') return 'POLICY_CONTEXT_OVERFLOW'
  if (code === 'limit_reached') return 'AGENT_LIMIT'
  if (status >= 500 || status === 429 || status === 408) return 'POLICY_UNAVAILABLE'
  if (!throughGateway) return 'AGENT_FAILED'
  return status === 401 || status === 403 || status === 404 ? 'GATEWAY_UNAUTHORIZED' : 'GATEWAY_BAD_REQUEST'
}

function nameOf({ model, baseUrl }: PolicyEndpoint, side: ModelSide): string {
  if (side === 'policy') return 'The policy'
  return side === 'frozen' ? `The frozen model "${model}"` : `The model "${model}" at ${URL.parse(baseUrl)?.origin ?? baseUrl}`
}

/**
 * Turns a failed model call into a TrainError. Its code is the server's if the catalogue has it, by its own name or by its name on the
 * wire; else it follows from the status. The message leaves out the path of the URL, which is a capability.
 */
export function toModelError(error: unknown, endpoint: PolicyEndpoint, side: ModelSide): TrainError {
  if (error instanceof TrainError) return error
  const where = nameOf(endpoint, side)
  if (error instanceof APIError && typeof error.status === 'number') {
    const body = error.error as { message?: unknown; code?: unknown } | undefined
    const reason = typeof body?.message === 'string' ? body.message : error.message
    const code = codeOf(error.status, body?.code ?? error.code, side !== 'own')
    return new TrainError(code, `${where} refused the call with status ${error.status}: ${reason}`, {
      cause: error,
      details: { status: error.status },
    })
  }
  const root = rootCause(error)
  const message = root instanceof Error ? root.message || String((root as { code?: unknown }).code ?? root.name) : String(root)
  return new TrainError('POLICY_UNAVAILABLE', `${where} gave no answer: ${message}. Check that the endpoint runs.`, { cause: error })
}
