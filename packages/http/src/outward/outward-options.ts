import type { RateLimits } from './rate.ts'

/** A server that the operator has named and trusts: a search engine, an archive, a model. It may be on loopback. */
export interface OutwardService {
  readonly name: string
  /** Base URL of its paths. A star in it stands for the part that a tool names: `https://*.wikipedia.org` for `wikipedia:de`. */
  readonly baseUrl: string
  /** Added to each request to it. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Parameters added to the query of each request to it. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Values of the above that appear in no answer, error or recording. */
  readonly secrets?: readonly string[] | undefined
  /** Limits over all rollouts; 16 requests at one time by default. */
  readonly rate?: RateLimits | undefined
}

/** What may be asked of the public web. */
export interface WebOptions {
  /** 80 and 443 by default. */
  readonly ports?: readonly number[] | undefined
  /** Origins that another server answers for, which may be on loopback: `{ 'https://example.com': 'http://127.0.0.1:4000' }`. */
  readonly mirrors?: Readonly<Record<string, string>> | undefined
  readonly userAgent?: string | undefined
  /** Limits for each host, over all rollouts; 8 requests at one time by default. */
  readonly rate?: RateLimits | undefined
}

/** Where answers are recorded, or replayed from. */
export interface OutwardCassette {
  readonly path: string
  /** `record` sends requests without a recorded answer, `replay` sends none. */
  readonly mode: 'record' | 'replay'
  /** What a replay does without a recorded answer: an error for the tool, which is the default, or a live request that is not recorded. */
  readonly miss?: 'error' | 'live' | undefined
}

export interface OutwardOptions {
  readonly services: readonly OutwardService[]
  readonly web?: WebOptions | undefined
  /** The recording; without it all requests are live. */
  readonly cassette?: OutwardCassette | undefined
}
