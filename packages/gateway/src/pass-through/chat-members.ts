import type { ChatEngine } from '@aworld-train/core'
import type { Sampling } from '@aworld-train/protocol'
import type { PeekedFields } from './peek-fields.ts'
import { createToBytes, type ToBytes } from './splice-body.ts'

/** Members that a request ends with: the engine's own name for the model, the trainer's sampling, and what makes the engine report tokens. */
export interface ChatMembers {
  /** `fields` are those of the request. What is `lasting` is the same object for many calls: its members are made once. */
  of(sampling: Sampling, fields: Pick<PeekedFields, 'model' | 'topLogprobs'>, lasting: boolean): string
  readonly toBytes: ToBytes
}

export function createChatMembers({ model: { name }, splice }: Pick<ChatEngine, 'model' | 'splice'>): ChatMembers {
  const known = new WeakMap<Sampling, string>()
  const renamed = `"model":${JSON.stringify(name)}`

  function spliced(sampling: Sampling, lasting: boolean): string {
    if (!lasting) return splice(sampling)
    let members = known.get(sampling)
    if (members === undefined) {
      members = splice(sampling)
      known.set(sampling, members)
    }
    return members
  }

  return {
    toBytes: createToBytes(),
    of(sampling, { model, topLogprobs }, lasting) {
      const members = spliced(sampling, lasting)
      if (model === name && topLogprobs === undefined) return members
      // An engine may set the number of alternatives; the client's own comes after that.
      const all = [model === name ? '' : renamed, members, topLogprobs === undefined ? '' : `"top_logprobs":${topLogprobs}`]
      return all.filter((each) => each !== '').join(',')
    },
  }
}
