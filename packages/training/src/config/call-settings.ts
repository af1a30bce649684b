import type { TrainedCall, TrainedCalls } from '@aworld-train/core'
import { z } from 'zod'

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'gm')
    return true
  } catch {
    return false
  }
}

const ChooseCalls = z.custom<(call: TrainedCall) => boolean>(
  (value) => typeof value === 'function',
  'must be all, with-tools or a function',
)

/** The gateway's treatment of agents' calls, whichever trainer runs. */
export const CallSettings = z.strictObject({
  trainedCalls: z
    .union([z.enum(['all', 'with-tools']), ChooseCalls])
    .default('with-tools')
    .describe(
      'Model calls that are trained: `all`; `with-tools`, of an agent that has tools, only those that offer them; or a function of a call. The others are recorded, and stand in the ledger as `side-call`.',
    ),
  hostedTools: z
    .enum(['leave-out', 'refuse'])
    .default('leave-out')
    .describe(
      'Tools that a provider would run, such as `web_search`: `leave-out` leaves them out of the prompt and counts them, `refuse` refuses their calls.',
    ),
  ignore: z
    .array(z.string().min(1).refine(isPattern, 'must be a regular expression'))
    .default([])
    .describe(
      'Regular expressions of text that an agent may change between its calls, such as the date in its instructions. The text of the first call stays, so that the conversation goes on.',
    ),
})
export type CallSettings = Omit<z.infer<typeof CallSettings>, 'trainedCalls'> & { readonly trainedCalls: TrainedCalls }

/** The part of a configuration's `gateway` that every trainer reads. */
export const callSettingsOf = ({ trainedCalls, hostedTools, ignore }: CallSettings): CallSettings => ({ trainedCalls, hostedTools, ignore })
