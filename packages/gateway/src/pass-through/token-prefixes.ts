/** A call whose prompt and completion together have `length` ids and this hash. */
interface HashedCall {
  readonly call: number
  readonly length: number
  readonly first: number
  readonly second: number
  /** Number of messages of its request, plus the answer. */
  readonly messages: number
}

/** Two running hashes over 32-bit ids. Together their 64 bits tell different conversations apart. */
const next = (hash: number, id: number) => Math.imul(hash ^ id, 0x01000193)
const nextOther = (hash: number, id: number) => {
  const mixed = Math.imul((hash ^ id) | 0, 0x85ebca6b)
  return mixed ^ (mixed >>> 15)
}

export interface PlacedCall {
  readonly call: number
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
  /** Number of messages of its request, plus the answer. */
  readonly messages: number
}

/** An earlier call, with the number of its messages and of the ids of its prompt and completion. */
export type Parent = Pick<HashedCall, 'call' | 'messages' | 'length'>

/** Finds the earlier call that a prompt continues, by its ids. */
export interface TokenPrefixes {
  /** Adds a call and returns the longest earlier call whose prompt and completion begin this prompt, the latest of equals. */
  place(call: PlacedCall): Parent | null
  readonly size: number
}

/** The hash of no ids. */
const start = 0x811c9dc5 | 0

export function createTokenPrefixes(): TokenPrefixes {
  /** Earlier calls by their length, shortest first. */
  const calls: HashedCall[] = []
  return {
    place({ call, promptTokenIds, completionTokenIds, messages }) {
      let [first, second, length, passed] = [start, 0, 0, 0]
      let parent: HashedCall | null = null
      const take = (ids: Int32Array) => {
        for (const id of ids) {
          first = next(first, id)
          second = nextOther(second, id)
          length++
          for (let candidate = calls[passed]; candidate && candidate.length <= length; candidate = calls[++passed])
            if (candidate.length === length && candidate.first === first && candidate.second === second) parent = candidate
        }
      }
      take(promptTokenIds)
      const found = parent as HashedCall | null
      take(completionTokenIds)
      let place = calls.length
      while (place > 0 && calls[place - 1]!.length > length) place--
      calls.splice(place, 0, { call, length, first, second, messages })
      return found
    },
    get size() {
      return calls.length
    },
  }
}
