import type { Message } from '@aworld-train/core'
import type { ModelCall } from '../../call.ts'
import type { Namespaces } from './namespaces.ts'

/** A call of the Responses dialect, with what its answer needs. */
export interface ResponsesCall extends ModelCall {
  readonly responses: {
    /** The conversation without the instructions. */
    readonly messages: readonly Message[]
    /** The own names of tools in namespaces. */
    readonly namespaces: Namespaces
    /** Whether later calls may refer to the answer. */
    readonly store: boolean
    /** Whether the request asks for reasoning as a summary. */
    readonly summary: boolean
    /** Whether reasoning is also sent in the form that clients hand back unread. */
    readonly sealed: boolean
    /** The answer that this call continues. */
    readonly previous: string | null
    /** Members of the response that repeat the request, as JSON between `{` and `}`. */
    readonly echo: string
  }
}
