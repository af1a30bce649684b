import type { IncomingMessage } from 'node:http'

/** The address that a request is for; its host means nothing. A path may begin with two slashes, which name no host here. */
export function requestUrl({ url = '/' }: Pick<IncomingMessage, 'url'>): URL {
  return URL.parse(url.startsWith('/') ? `http://localhost${url}` : url) ?? new URL('http://localhost/')
}
