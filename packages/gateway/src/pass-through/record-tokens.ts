/** Ids of conversations, each of which only grows. */
interface Chain {
  ids: Int32Array
  length: number
}

/** A call's prompt and completion are the first `end` ids of the chain. */
interface ChainEnd {
  readonly chain: Chain
  readonly end: number
}

export interface CallTokens {
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
}

/**
 * The ids of a record's calls. A call that goes on from the last of its conversation stands behind it in the same memory: a
 * conversation takes as much as its longest call, and of a later call only what is new is copied.
 */
export interface RecordTokens {
  /** `parent` is a call that was added, whose prompt and completion stand before `suffix`. */
  add(call: number, parent: number | null, suffix: Int32Array, completion: Int32Array): CallTokens
}

export function createRecordTokens(): RecordTokens {
  const calls = new Map<number, ChainEnd>()

  /** A chain that ends behind `parent` and has room for `more` ids. */
  function extend(parent: ChainEnd | undefined, more: number): Chain {
    const length = parent?.end ?? 0
    if (parent?.chain.length === length) {
      const { chain } = parent
      if (chain.ids.length < length + more) {
        // Earlier calls keep the memory that they have.
        const ids = new Int32Array(length + more + (length >> 1))
        ids.set(chain.ids.subarray(0, length))
        chain.ids = ids
      }
      return chain
    }
    const ids = new Int32Array(length + more)
    if (parent) ids.set(parent.chain.ids.subarray(0, length))
    return { ids, length }
  }

  return {
    add(call, parent, suffix, completion) {
      const chain = extend(parent === null ? undefined : calls.get(parent), suffix.length + completion.length)
      const middle = chain.length + suffix.length
      const end = middle + completion.length
      chain.ids.set(suffix, chain.length)
      chain.ids.set(completion, middle)
      chain.length = end
      calls.set(call, { chain, end })
      return { promptTokenIds: chain.ids.subarray(0, middle), completionTokenIds: chain.ids.subarray(middle, end) }
    },
  }
}
