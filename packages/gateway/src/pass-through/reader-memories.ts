import type { ReaderMemory } from '@aworld-train/core'

/** What readers keep, by record: bounded, that of the record which was read longest ago is forgotten first. */
export interface ReaderMemories {
  /** The memory of a record, which is without one until it is given back. */
  take(record: number): ReaderMemory
  give(record: number, memory: ReaderMemory): void
}

export function createReaderMemories(maxBytes: number): ReaderMemories {
  /** In order of use. */
  const memories = new Map<number, ReaderMemory>()
  let bytes = 0
  const drop = (record: number): ReaderMemory | undefined => {
    const memory = memories.get(record)
    if (!memory) return undefined
    memories.delete(record)
    bytes -= memory.bytes
    return memory
  }
  return {
    take: (record) => drop(record) ?? { kept: null, bytes: 0 },
    give(record, memory) {
      memories.set(record, memory)
      bytes += memory.bytes
      for (const oldest of memories.keys()) {
        if (bytes <= maxBytes) return
        drop(oldest)
      }
    },
  }
}
