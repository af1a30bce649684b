import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPacer } from './pacer.ts'

const { signal } = new AbortController()

/** A pacer whose pieces take `pieceMs` by its clock; each adds its name to `done` when it has worked. */
function start(pieceMs: number) {
  let clock = 0
  const pacer = createPacer(() => clock)
  const done: string[] = []
  const piece = async (name: string, owner: object, until = signal) => {
    await pacer.pass(owner, until)
    clock += pieceMs
    done.push(name)
  }
  return { done, piece }
}

test('of pieces that take long one is worked at in each turn of the event loop, the first at once', async () => {
  const { done, piece } = start(5)
  await piece('0', {})
  const others = ['1', '2', '3'].map((name) => piece(name, {}))
  await Promise.resolve()
  for (const count of [1, 2, 3, 4]) {
    expect(done.length).toBe(count)
    await nextTurn()
  }
  await Promise.all(others)
})

test('pieces that take little time together wait for none', async () => {
  const { done, piece } = start(1)
  let turns = 0
  const counting = nextTurn().then(() => turns++)
  for (let index = 0; index < 5; index += 1) await piece(String(index), {})
  expect(turns).toBe(0)
  await piece('5', {})
  expect(turns).toBe(1)
  expect(done.length).toBe(6)
  await counting
})

test('owners take turns, and who has left takes none', async () => {
  const { done, piece } = start(5)
  const left = new AbortController()
  const [a, b] = [{}, {}]
  await piece('a0', a)
  const all = ['a1', 'a2', 'a3'].map((name) => piece(name, a))
  const gone = piece('b0', b, left.signal)
  all.push(piece('b1', b))
  left.abort(new Error('the client hung up'))
  await expect(gone).rejects.toThrow('the client hung up')
  await Promise.all(all)
  expect(done).toEqual(['a0', 'a1', 'b1', 'a2', 'a3'])
  await expect(piece('b2', b, left.signal)).rejects.toThrow('the client hung up')
})
