import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** What a handler reads of a request beside its body; an IncomingMessage is one. */
export interface HttpRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly socket: Socket
  /** All of it has come. */
  readonly complete: boolean
}

/** What a handler answers with; a ServerResponse is one. */
export interface HttpResponse {
  readonly headersSent: boolean
  readonly writableEnded: boolean
  /** All of it was handed to the system. */
  readonly writableFinished: boolean
  /** Nothing more can be sent: it was sent whole, or its client has gone. */
  readonly destroyed: boolean
  writeHead(status: number, headers?: OutgoingHttpHeaders): unknown
  /** `false` asks to wait for `drain`. */
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
  /** What is written before the end, in this turn of the event loop, leaves in one piece with it. */
  cork(): void
  /** Ends the connection. */
  destroy(): unknown
  /** `close` comes once, behind the whole answer or in its stead. */
  once(event: 'close' | 'drain', listener: () => void): unknown
}
