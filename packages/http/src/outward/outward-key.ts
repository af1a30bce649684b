import { stableHash } from '@aworld-train/core'

const content = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Name of a request in a recording. It does not depend on the order of a query's parameters or of a JSON body's members. It contains
 * neither the rollout nor a service's headers, keys and base URL.
 */
export function outwardKey(service: string, method: string, target: string, body: string | Uint8Array | undefined): string {
  const [address = '', query = ''] = target.split('#', 1)[0]!.split(/\?(.*)/s)
  const parameters = new URLSearchParams(query)
  parameters.sort()
  const sorted = parameters.size > 0 ? `${address}?${parameters}` : address
  const text = body instanceof Uint8Array ? Buffer.from(body).toString('latin1') : body
  return `${service} ${method} ${sorted}${text === undefined ? '' : ` ${stableHash(content(text))}`}`
}

/** The service of a recorded request, without its part. */
export const serviceOfKey = (key: string) => key.split(/[: ]/, 1)[0]!
