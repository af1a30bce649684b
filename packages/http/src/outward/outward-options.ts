import type { RateLimits } from './rate.ts'

/** A server of somebody's that the operator trusts by name: a search engine, an archive, a model. It may be on loopback. */
export interface OutwardService {
  readonly name: string
  /** Paths go behind it. A star in it stands for the part that a tool names: `https://*.wikipedia.org`, asked as `wikipedia:de`. */
  readonly baseUrl: string
  /** Added to each request to it. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Parameters added to the query of each request to it. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Values of the above that appear in no answer, error or recording. */
  readonly secrets?: readonly string[] | undefined
  /** Shared by all rollouts; 16 at one time by default. */
  readonly rate?: RateLimits | undefined
}

/** What may be asked of the public web. */
export interface WebOptions {
  /** 80 and 443 by default. */
  readonly ports?: readonly number[] | undefined
  /** Origins that another server answers for, which may be on loopback: `{ 'https://example.com': 'http://127.0.0.1:4000' }`. */
  readonly mirrors?: Readonly<Record<string, string>> | undefined
  readonly userAgent?: string | undefined
  /** Of each host, shared by all rollouts; 8 at one time by default. */
  readonly rate?: RateLimits | undefined
}

/** Where answers are recorded, or replayed from. */
export interface OutwardCassette {
  readonly path: string
  /** `record` asks for what is not there yet, `replay` asks nobody. */
  readonly mode: 'record' | 'replay'
  /** What a replay does without a recorded answer: an error for the tool, which is the default, or a live request that is not recorded. */
  readonly miss?: 'error' | 'live' | undefined
}

export interface OutwardOptions {
  readonly services: readonly OutwardService[]
  readonly web?: WebOptions | undefined
  /** All is live where absent. */
  readonly cassette?: OutwardCassette | undefined
}
