import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openParityContext } from './parity/parity-context.ts'
import { parityTable } from './parity-table.ts'

let context: Awaited<ReturnType<typeof openParityContext>>
beforeAll(async () => {
  context = await openParityContext()
})
afterAll(() => context[Symbol.asyncDispose]())

describe.each(parityTable)('$title', ({ rows }) => {
  it.each(rows.filter(({ check }) => check))('$status: $theirs', ({ check }) => check!(context))
})

it('has a check for every row that works or differs, and says with what the others come', () => {
  const rows = parityTable.flatMap((section) => section.rows)
  expect(rows.filter(({ status, check }) => status !== 'later' && !check).map(({ theirs }) => theirs)).toEqual([])
  expect(rows.filter(({ status, note }) => status === 'later' && !note).map(({ theirs }) => theirs)).toEqual([])
  expect(new Set(rows.map(({ theirs }) => theirs)).size).toBe(rows.length)
})
