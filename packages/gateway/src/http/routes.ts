import { invocationPlace } from '@aworld-train/core'

/** The meaning of a URL. `path` is the part after `/v1` and the capability. */
export type Route =
  | { readonly kind: 'health' | 'ready' | 'metrics' | 'models' | 'admin' | 'unknown'; readonly path: string }
  /**
   * `capability` is the part of the URL that names and opens an agent's record, and `place` tells its invocations apart: '' for the first,
   * `null` for a text that is no place.
   */
  | { readonly kind: 'agent'; readonly capability: string; readonly place: string | null; readonly path: string }
  /** `address` is the part before `/v1`, which may be empty; `key` is the bearer token, or Anthropic's `x-api-key`. */
  | { readonly kind: 'address'; readonly address: string; readonly key: string | null; readonly path: string }

/** The path to a model's weights, with the model's name percent-encoded. */
export const weightsPath = /^\/models\/([^/]+)\/weights$/

const states: ReadonlyMap<string, Route> = new Map([
  ['/health', { kind: 'health', path: '/health' }],
  ['/ready', { kind: 'ready', path: '/ready' }],
  ['/metrics', { kind: 'metrics', path: '/metrics' }],
])

export const isModels = (path: string): boolean => path === '/models' || (path.startsWith('/models/') && !weightsPath.test(path))
const isSessions = (path: string): boolean => path === '/sessions' || path.startsWith('/sessions/')

/** Some clients append `/v1` to their base URL and some do not, so a path may begin with none, one or two. */
const withoutVersion = (path: string): string => path.replace(/^(?:\/v1){1,2}(?=\/)/, '')

/** Reads `/r/{capability}/…`, `/r/{capability}/~{place}/…` and `/{address}/…`, with `/v1` or without, and `/v1/…`, where the key may be a capability. */
export function toRoute(url: string, authorization: string | undefined, apiKey?: string | string[] | undefined): Route {
  const query = url.indexOf('?')
  const whole = query < 0 ? url : url.slice(0, query)
  if (whole.startsWith('/r/')) {
    const end = whole.indexOf('/', 3)
    if (end < 0) return { kind: 'unknown', path: whole }
    const [segment, place = ''] = /^\/~([^/]*)(?=\/)/.exec(whole.slice(end)) ?? ['']
    return {
      kind: 'agent',
      capability: whole.slice(3, end),
      place: segment === '' || invocationPlace.test(place) ? place : null,
      path: withoutVersion(whole.slice(end + segment.length)),
    }
  }
  const state = states.get(whole)
  if (state) return state
  const bearer = authorization?.startsWith('Bearer ') ? authorization.slice(7).trim() : null
  const key = bearer ?? (typeof apiKey === 'string' ? apiKey : null)
  if (!whole.startsWith('/v1/')) {
    const end = whole.indexOf('/', 1)
    if (end < 0) return { kind: 'unknown', path: whole }
    return { kind: 'address', address: whole.slice(1, end), key, path: withoutVersion(whole.slice(end)) }
  }
  const path = withoutVersion(whole)
  if (isSessions(path) || weightsPath.test(path)) return { kind: 'admin', path }
  if (isModels(path)) return { kind: 'models', path }
  return { kind: 'address', address: '', key, path }
}
