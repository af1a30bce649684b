import { ToolError } from '@aworld-train/core'
import { AnswerTooLarge, UnknownPacking } from './exchange.ts'
import { AddressRefused } from './guarded-connector.ts'

/** By whom a request ended: by the guard, by the limit of time, or by the other side. */
export type OutwardEnd = 'refused' | 'late' | 'failed'

/** The reason why there is no answer, for a model to read. */
export class OutwardError extends ToolError {
  /** Whether asking again would end the same. Such an error is recorded like an answer, and the request is not repeated. */
  readonly lasting: boolean
  readonly end: OutwardEnd

  constructor(message: string, lasting: boolean, { end = 'failed', ...options }: ErrorOptions & { readonly end?: OutwardEnd } = {}) {
    super(message, options)
    this.lasting = lasting
    this.end = end
  }
}

/** The error for an address that is never asked. */
export const refused = (message: string) => new OutwardError(message, true, { end: 'refused' })

export const refusedAddress = (host: string) =>
  refused(`${host} is not on the public web, and only addresses there can be read; use another source.`)

/** Limits of a request, and its name in messages for a model. */
export interface RequestWords {
  readonly label: string
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** Whether the name of a host was not found: it may be wrong, or this machine may have no network. */
export const isNotFound = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOTFOUND'

/** The error for a host that was not found. It lasts if the host is no service and other names are found. */
export function hostNotFound(host: string, { isService, othersAreFound }: { isService: boolean; othersAreFound: boolean }): OutwardError {
  if (!othersAreFound)
    return new OutwardError(`"${host}" was not found, and no other name either: this machine has no network now; go on without it.`, false)
  if (isService) return new OutwardError(`"${host}" was not found; try again, or use another source.`, false)
  return new OutwardError(`There is no host "${host}"; check the address, or search for the page.`, true)
}

/** The error for a failed request to `host`. It leaves out the system's own wording, which varies. */
export function toOutwardError(cause: unknown, host: string, { label, maxBytes, timeoutMs }: RequestWords): OutwardError {
  const error = (message: string, lasting: boolean) => new OutwardError(message, lasting, { cause })
  if (cause instanceof OutwardError) return cause
  if (cause instanceof AddressRefused) return refusedAddress(host)
  if (cause instanceof AnswerTooLarge) return tooLarge(label, maxBytes)
  if (cause instanceof UnknownPacking)
    return error(`The answer of ${label} is packed as "${cause.message}", which cannot be unpacked; use another source.`, true)
  const { code = '', name } = cause as NodeJS.ErrnoException
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return new OutwardError(`${label} did not answer in full within ${timeoutMs / 1000} s; try again, or use another source.`, false, {
      cause,
      end: 'late',
    })
  if (code.startsWith('Z_') || code.startsWith('ERR_BROTLI') || code.startsWith('ERR__ERROR'))
    return error(`The answer of ${label} is damaged: it cannot be unpacked; use another source.`, true)
  if (/CERT|SELF_SIGNED|UNABLE_TO/.test(code))
    return error(`The certificate of ${label} is not valid (${code}); use another source.`, false)
  return error(`The connection to ${label} failed (${code || name}); try again, or use another source.`, false)
}

export const tooLarge = (label: string, maxBytes: number) =>
  new OutwardError(`The answer of ${label} is larger than ${maxBytes} bytes, the most that is taken.`, false)
