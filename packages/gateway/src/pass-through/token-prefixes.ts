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

export interface PlacedCall {
  readonly call: number
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
  /** Messages of its request and the one that answered. */
  readonly messages: number
  /** As many of its prompt ids as the prompt placed last had are known to be those; 0 where that is not known of all of them. */
  readonly repeated: number
}

/** An earlier call, its messages, and how many ids its prompt and completion are. */
export type Parent = Pick<Known, 'call' | 'messages' | 'length'>

/** Finds which earlier call a prompt goes on from, by its ids. */
export interface TokenPrefixes {
  /** The longest earlier call whose prompt and completion begin this prompt, the latest of equals. The call is one of them from now on. */
  place(call: PlacedCall): Parent | null
  readonly size: number
}

export function createTokenPrefixes(): TokenPrefixes {
  /** By length, shortest first. */
  const calls: Known[] = []
  /** How far the last prompt has been looked at: its hash, and the calls that are no longer than it. */
  let [first, second, length, passed] = [0x811c9dc5 | 0, 0, 0, 0]
  let found: Known | null = null

  function pass(): void {
    for (let known = calls[passed]; known && known.length <= length; known = calls[++passed]) {
      if (length > 0 && known.length === length && known.first === first && known.second === second) found = known
    }
  }

  function add({ call, completionTokenIds, messages }: PlacedCall): void {
    let [hash, other] = [first, second]
    for (let index = 0; index < completionTokenIds.length; index++) {
      hash = next(hash, completionTokenIds[index]!)
      other = nextOther(other, completionTokenIds[index]!)
    }
    const known = { call, length: length + completionTokenIds.length, first: hash, second: other, messages }
    let place = calls.length
    while (place > 0 && calls[place - 1]!.length > known.length) place--
    calls.splice(place, 0, known)
  }

  return {
    place(placed) {
      const { promptTokenIds, repeated } = placed
      if (repeated === 0 || repeated !== length) {
        ;[first, second, length, passed] = [0x811c9dc5 | 0, 0, 0, 0]
        found = null
      }
      pass()
      while (length < promptTokenIds.length) {
        const id = promptTokenIds[length++]!
        first = next(first, id)
        second = nextOther(second, id)
        if (passed < calls.length && calls[passed]!.length <= length) pass()
      }
      const parent = found
      add(placed)
      return parent
    },
    get size() {
      return calls.length
    },
  }
}
