import { GrowingTokens } from '@aworld-train/core'

export interface CallTokens {
  readonly promptTokenIds: Int32Array
  readonly completionTokenIds: Int32Array
}

/** The ids of a record's calls. A conversation takes only as much memory as its longest call. */
export interface RecordTokens {
  /** `parent` is a call added earlier, whose prompt and completion stand before `suffix`. */
  add(call: number, parent: number | null, suffix: Int32Array, completion: Int32Array): CallTokens
}

export function createRecordTokens(): RecordTokens {
  const calls = new Map<number, ReturnType<GrowingTokens['extend']>>()
  return {
    add(call, parent, suffix, completion) {
      const before = parent === null ? undefined : calls.get(parent)
      const extended = (before?.tokens ?? new GrowingTokens()).extend(before?.ids.length ?? 0, [suffix, completion])
      calls.set(call, extended)
      const { ids } = extended
      const middle = ids.length - completion.length
      return { promptTokenIds: ids.subarray(0, middle), completionTokenIds: ids.subarray(middle) }
    },
  }
}
