import type { Message } from '@aworld-train/protocol'
import type { ModelCall } from '../../call.ts'
import type { Namespaces } from './namespaces.ts'

/** What a call of the Responses dialect carries for its answer. */
export interface ResponsesCall extends ModelCall {
  readonly responses: {
    /** The conversation without the instructions. */
    readonly messages: readonly Message[]
    /** The own names of tools in namespaces. */
    readonly namespaces: Namespaces
    /** Later calls may refer to the answer. */
    readonly store: boolean
    /** Reasoning is shown as a summary, as the request asks. */
    readonly summary: boolean
    /** Reasoning is also sent in the form that clients hand back unread. */
    readonly sealed: boolean
    /** The answer that this one goes on from. */
    readonly previous: string | null
    /** Members of the response that repeat the request, as JSON between `{` and `}`. */
    readonly echo: string
  }
}
