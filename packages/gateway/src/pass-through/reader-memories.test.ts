import { expect, test } from 'vitest'
import { createReaderMemories } from './reader-memories.ts'

test('the memory of the record that was read longest ago is forgotten first, and what was taken is not there', () => {
  const memories = createReaderMemories(100)
  const read = (record: number, bytes: number) => {
    const memory = memories.take(record)
    const kept = memory.kept
    memory.kept = record
    memory.bytes = bytes
    memories.give(record, memory)
    return kept
  }
  expect([read(1, 40), read(2, 40), read(1, 50)]).toEqual([null, null, 1])
  expect([read(3, 40), read(1, 50), read(2, 10)]).toEqual([null, 1, null])
  expect([read(4, 101), read(4, 1), read(1, 1)]).toEqual([null, null, null])
  expect([memories.take(4).kept, memories.take(4).kept]).toEqual([4, null])
})
