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
  /** Whether a service is configured. */
  hasService(name: string): boolean
}
