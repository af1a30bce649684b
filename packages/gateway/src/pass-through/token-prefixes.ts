/** A call whose prompt and completion are `length` ids with this hash. */
interface Known {
  readonly call: number
  readonly length: number
  readonly first: number
  readonly second: number
  /** Messages of its request and the one that answered. */
  readonly messages: number
}

/** Two running hashes over 32-bit ids: 64 bits between two conversations that differ. */
const next = (hash: number, id: number) => Math.imul(hash ^ id, 0x01000193)
const nextOther = (hash: number, id: number) => {
  const mixed = Math.imul((hash ^ id) | 0, 0x85ebca6b)
  return mixed ^ (mixed >>> 15)
}

/** Finds which earlier call a prompt goes on from, by its ids. */
export interface TokenPrefixes {
  /** The longest earlier call whose prompt and completion begin `promptTokenIds`, the latest of equals. */
  match(promptTokenIds: Int32Array): { readonly call: number; readonly messages: number } | null
  add(call: number, promptTokenIds: Int32Array, completionTokenIds: Int32Array, messages: number): void
  readonly size: number
}

export function createTokenPrefixes(): TokenPrefixes {
  /** By length, shortest first. */
  const calls: Known[] = []

  return {
    match(promptTokenIds) {
      let [first, second, at] = [0x811c9dc5 | 0, 0, 0]
      let found: Known | null = null
      for (let length = 1; length <= promptTokenIds.length && at < calls.length; length++) {
        const id = promptTokenIds[length - 1]!
        first = next(first, id)
        second = nextOther(second, id)
        for (let known = calls[at]; known && known.length <= length; known = calls[++at]) {
          if (known.length === length && known.first === first && known.second === second) found = known
        }
      }
      return found
    },
    add(call, promptTokenIds, completionTokenIds, messages) {
      let [first, second] = [0x811c9dc5 | 0, 0]
      for (const ids of [promptTokenIds, completionTokenIds]) {
        for (let index = 0; index < ids.length; index++) {
          first = next(first, ids[index]!)
          second = nextOther(second, ids[index]!)
        }
      }
      const known = { call, length: promptTokenIds.length + completionTokenIds.length, first, second, messages }
      let place = calls.length
      while (place > 0 && calls[place - 1]!.length > known.length) place--
      calls.splice(place, 0, known)
    },
    get size() {
      return calls.length
    },
  }
}
