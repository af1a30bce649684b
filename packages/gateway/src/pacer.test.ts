import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPacer } from './pacer.ts'

const { signal } = new AbortController()

/** A pacer whose pieces take `pieceMs` by its clock; each adds its name to `done`. */
function start(pieceMs: number) {
  let clock = 0
  const pacer = createPacer(() => clock)
  const done: string[] = []
  const piece = (name: string, owner: object, until = signal) =>
    pacer.run(owner, until, () => {
      clock += pieceMs
      done.push(name)
      return name
    })
  return { pacer, done, piece }
}

test('between pieces that take long the event loop turns often enough to accept a crowd of connections', async () => {
  const { done, piece } = start(5)
  const all = ['0', '1', '2'].map((name) => piece(name, {}))
  for (const count of [1, 2]) {
    expect(done.length).toBe(count)
    for (let turns = 1; turns < 32; turns += 1) await nextTurn()
    expect(done.length).toBe(count)
    await nextTurn()
  }
  expect(done).toEqual(['0', '1', '2'])
  expect(await Promise.all(all)).toEqual(['0', '1', '2'])
})

test('pieces that take little time together run at once', async () => {
  const { done, piece } = start(1)
  const all = Array.from({ length: 7 }, (_, index) => piece(String(index), {}))
  expect(done.length).toBe(5)
  await Promise.all(all)
  await nextTurn()
  void piece('7', {})
  expect(done.length).toBe(8)
})

test('owners take turns, and who has left takes none', async () => {
  const { done, piece } = start(5)
  const left = new AbortController()
  const [a, b] = [{}, {}]
  const all = ['a0', 'a1', 'a2', 'a3'].map((name) => piece(name, a))
  const gone = piece('b0', b, left.signal)
  all.push(piece('b1', b))
  left.abort(new Error('the client hung up'))
  await expect(gone).rejects.toThrow('the client hung up')
  await Promise.all(all)
  expect(done).toEqual(['a0', 'a1', 'b1', 'a2', 'a3'])
  await expect(piece('b2', b, left.signal)).rejects.toThrow('the client hung up')
})

test('work that throws is an error of its caller alone', async () => {
  const { pacer, piece } = start(5)
  const broken = pacer.run({}, signal, () => {
    throw new Error('not JSON')
  })
  await expect(broken).rejects.toThrow('not JSON')
  expect(await piece('next', {})).toBe('next')
})
