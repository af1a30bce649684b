/** A request to the outside world. */
export interface OutwardRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The body of a POST. The caller encodes JSON and forms. */
  readonly body?: string | Uint8Array | undefined
  /** Largest accepted answer, decompressed, in bytes; 10 MB by default. */
  readonly maxBytes?: number | undefined
  /** Default 20,000. */
  readonly timeoutMs?: number | undefined
}

export interface OutwardResponse {
  readonly status: number
  /** Address after the last redirect. */
  readonly url: string
  /** Such as `text/html; charset=utf-8`; empty if the answer names none. */
  readonly contentType: string
  readonly bytes: Buffer
}

/** A request of a program in a workspace, as the program made it. */
export interface RelayRequest {
  /** In capitals. */
  readonly method: string
  readonly url: URL
  /**
   * Names in lower case. Headers of the connection, conditions and ranges are not sent, so that the answer is whole whatever the program has
   * kept of an earlier one.
   */
  readonly headers: RelayHeaders
  readonly body?: Uint8Array | undefined
}

export interface RelayResponse {
  readonly status: number
  /** Without those of the connection, of the packing, of the time of the answer, and of other ways to the same host. */
  readonly headers: RelayHeaders
  /** Unpacked. */
  readonly bytes: Buffer
}

export type RelayHeaders = Readonly<Record<string, string | readonly string[]>>

/** The public web for the programs of one rollout. Redirects are theirs to follow. */
export interface Relay {
  /** Throws a ToolError for an address that no request reaches. */
  check(url: URL): void
  /** Sends a request, a few at once; others wait. Rejects as `Outward` does. */
  send(request: RelayRequest, signal: AbortSignal): Promise<RelayResponse>
}

/**
 * The tools' access to the outside: guarded, limited, and recorded or replayed. An address that is not public, a limit, a lost connection
 * and a recording without this request reject with a ToolError; an HTTP status does not.
 */
export interface Outward {
  /** Fetches a page of the public web. */
  fetch(url: string, request: OutwardRequest, signal: AbortSignal): Promise<OutwardResponse>
  /**
   * Asks a configured service, which may be on loopback. Its key is added here and stays here. `path` is appended to its base URL and
   * includes the query. A name may carry a part, such as `wikipedia:de`.
   */
  service(name: string, path: string, request: OutwardRequest, signal: AbortSignal): Promise<OutwardResponse>
  /**
   * Opens the web to the programs of a rollout. Where answers are recorded, the first request of an address and a body gets the first answer,
   * the second of the same rollout the second, and so on.
   */
  relay(): Relay
  /** Whether a service is configured. */
  hasService(name: string): boolean
}
