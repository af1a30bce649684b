import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPacer } from './pacer.ts'

const { signal } = new AbortController()

test('one passes in each turn of the event loop, the first at once', async () => {
  const pacer = createPacer()
  const passed: number[] = []
  const all = [0, 1, 2, 3].map((index) => pacer.pass({}, signal).then(() => passed.push(index)))
  await Promise.resolve()
  expect(passed).toEqual([0])
  for (const count of [2, 3, 4]) {
    await nextTurn()
    expect(passed.length).toBe(count)
  }
  await Promise.all(all)
  await nextTurn()
  await pacer.pass({}, signal)
})

test('owners take turns, and who has left takes none', async () => {
  const pacer = createPacer()
  const passed: string[] = []
  const left = new AbortController()
  const pass = (name: string, owner: object, until = signal) => pacer.pass(owner, until).then(() => passed.push(name))
  const [a, b] = [{}, {}]
  const all = ['a0', 'a1', 'a2'].map((name) => pass(name, a))
  const gone = pass('b0', b, left.signal)
  all.push(pass('b1', b))
  left.abort(new Error('the client hung up'))
  await expect(gone).rejects.toThrow('the client hung up')
  await Promise.all(all)
  expect(passed).toEqual(['a0', 'a1', 'b1', 'a2'])
  await expect(pass('b2', b, left.signal)).rejects.toThrow('the client hung up')
})
