/** A request to the world outside. */
export interface OutwardRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Of a POST; JSON is encoded by the caller. */
  readonly body?: string | undefined
  /** Largest answer taken, decompressed, in bytes; 10 MB by default. */
  readonly maxBytes?: number | undefined
  /** 20,000 by default. */
  readonly timeoutMs?: number | undefined
}

export interface OutwardResponse {
  readonly status: number
  /** Where the last redirect led. */
  readonly url: string
  /** `text/html; charset=utf-8`, empty where the answer names none. */
  readonly contentType: string
  readonly bytes: Buffer
}

/**
 * All that tools ask of the outside: guarded, limited, and recorded or replayed. An address that is not public, a limit, a lost
 * connection and a recording without this request reject with a ToolError; an HTTP status does not.
 */
export interface Outward {
  /** A page of the public web. */
  fetch(url: string, request: OutwardRequest, signal: AbortSignal): Promise<OutwardResponse>
  /** A configured service, which may be on loopback; its key is added here and stays here. `path` goes behind its base URL, query included; a name may carry a part, as `wikipedia:de`. */
  service(name: string, path: string, request: OutwardRequest, signal: AbortSignal): Promise<OutwardResponse>
  /** Whether a service is configured. */
  hasService(name: string): boolean
}
