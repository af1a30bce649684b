import type { AnswerSink } from './pass-on.ts'
import type { PeekedFields } from './peek-fields.ts'

/** A request to an engine, in Chat Completions, and the receiver of its answer. */
export interface EngineCall {
  readonly request: Buffer
  /** Unused fields of the client's own request in another dialect; `undefined` if this is the client's own request. */
  readonly unusedFields: Readonly<Record<string, string>> | undefined
  readonly fields: PeekedFields
  readonly sink: AnswerSink
}
