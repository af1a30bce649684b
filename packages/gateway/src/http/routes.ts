/** What a path asks for; `capability` is the part of the URL that names and opens an agent's record. */
export type Route =
  | { readonly kind: 'health' | 'ready' | 'metrics' | 'models' | 'unknown' }
  | { readonly kind: 'admin'; readonly path: string }
  | { readonly kind: 'agent'; readonly capability: string; readonly path: string }

/** The name of a model stands percent-encoded. */
export const weightsPath = /^\/v1\/models\/([^/]+)\/weights$/

const unknown: Route = { kind: 'unknown' }
const plain: ReadonlyMap<string, Route> = new Map([
  ['/health', { kind: 'health' }],
  ['/ready', { kind: 'ready' }],
  ['/metrics', { kind: 'metrics' }],
  ['/v1/models', { kind: 'models' }],
])

/** Some clients put `/v1` behind their base URL and some do not, so a path may begin with none, one or two. */
const withoutVersion = (path: string): string => path.replace(/^(?:\/v1){1,2}(?=\/)/, '')

/** Reads `/r/{capability}/…`, with `/v1` or without, or `/v1/…` with the capability as the bearer token or as Anthropic's `x-api-key`. */
export function toRoute(url: string, authorization: string | undefined, apiKey?: string | string[] | undefined): Route {
  const query = url.indexOf('?')
  const path = query < 0 ? url : url.slice(0, query)
  if (path.startsWith('/r/')) {
    const end = path.indexOf('/', 3)
    if (end < 0) return unknown
    return { kind: 'agent', capability: path.slice(3, end), path: withoutVersion(path.slice(end)) }
  }
  const known = plain.get(path)
  if (known) return known
  if (path === '/v1/sessions' || path.startsWith('/v1/sessions/') || weightsPath.test(path)) return { kind: 'admin', path }
  if (!path.startsWith('/v1/')) return unknown
  if (authorization?.startsWith('Bearer ')) return { kind: 'agent', capability: authorization.slice(7).trim(), path: withoutVersion(path) }
  return typeof apiKey === 'string' ? { kind: 'agent', capability: apiKey, path: withoutVersion(path) } : unknown
}
