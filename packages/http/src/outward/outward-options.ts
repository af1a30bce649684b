import type { RateLimits } from './rate.ts'

/** A server that the operator has named and trusts: a search engine, an archive, a model. It may be on loopback. */
export interface OutwardService {
  readonly name: string
  /** Base URL of its paths. A star stands for the part that a tool names: `https://*.wikipedia.org` for `wikipedia:de`. */
  readonly baseUrl: string
  /** Headers added to each of its requests. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Parameters added to the query of each of its requests. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Values of the above that must appear in no answer, error or recording. */
  readonly secrets?: readonly string[] | undefined
  /** Limits over all rollouts. Default: 16 requests at once. */
  readonly rate?: RateLimits | undefined
}

/** Bounds of requests to the public web. */
export interface WebOptions {
  /** Allowed ports. Default: 80 and 443. */
  readonly ports?: readonly number[] | undefined
  /** Origins that another server answers for, which may be on loopback, such as `{ 'https://example.com': 'http://127.0.0.1:4000' }`. */
  readonly mirrors?: Readonly<Record<string, string>> | undefined
  readonly userAgent?: string | undefined
  /** Limits for each host over all rollouts. Default: 8 requests at once. */
  readonly rate?: RateLimits | undefined
}

/** The file that answers are recorded to or replayed from. */
export interface OutwardCassette {
  readonly path: string
  /** `record` sends requests that have no recorded answer; `replay` sends none. */
  readonly mode: 'record' | 'replay'
  /** Behaviour of a replay without a recorded answer: an error for the tool (default), or a live request that is not recorded. */
  readonly miss?: 'error' | 'live' | undefined
}

export interface OutwardOptions {
  readonly services: readonly OutwardService[]
  readonly web?: WebOptions | undefined
  /** The recording. Without it all requests are live. */
  readonly cassette?: OutwardCassette | undefined
}
