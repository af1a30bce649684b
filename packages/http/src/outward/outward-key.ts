import { type RelayRequest, stableHash } from '@aworld-train/core'

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

/** The boundary of a form with files, which is another one each time. */
const boundaryOf = (contentType: string) => /^multipart\/form-data;.*boundary="?([^";]+)/i.exec(contentType)?.[1]

/** Name of a program's request in a recording. It does not depend on headers, nor on the boundary of a form. */
export function relayKey({ method, url, headers, body }: RelayRequest): string {
  const boundary = boundaryOf(String(headers['content-type'] ?? ''))
  const text = body && body.length > 0 ? Buffer.from(body).toString('latin1') : undefined
  return outwardKey('relay', method, url.href, boundary === undefined ? text : text?.replaceAll(boundary, 'boundary'))
}

/** The service of a recorded request, without its part. */
export const serviceOfKey = (key: string) => key.split(/[: ]/, 1)[0]!
