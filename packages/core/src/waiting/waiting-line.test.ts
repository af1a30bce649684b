import { expect, it } from 'vitest'
import { createWaitingLine } from './waiting-line.ts'

const never = new AbortController().signal

it('admits in the order of arrival', async () => {
  const line = createWaitingLine<string, number>()
  const first = line.wait('a', never)
  const second = line.wait('b', never)
  expect([line.first(), line.size()]).toEqual(['a', 2])
  line.admit(1)
  line.admit(2)
  line.admit(3)
  expect(await Promise.all([first, second])).toEqual([1, 2])
  expect([line.first(), line.size()]).toEqual([undefined, 0])
})

it('forgets who leaves, and says so once; who was admitted is not heard again', async () => {
  let left = 0
  const line = createWaitingLine<string, void>(() => left++)
  const client = new AbortController()
  const leaving = line.wait('a', client.signal)
  const staying = line.wait('b', client.signal)
  const behind = line.wait('c', never)
  line.admit()
  await leaving
  client.abort(new Error('gone'))
  await expect(staying).rejects.toThrow('gone')
  expect([line.first(), left]).toEqual(['c', 1])
  line.admit()
  await behind
})

it('takes nobody in who is gone already', async () => {
  const line = createWaitingLine<null, void>()
  await expect(line.wait(null, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  expect(line.size()).toBe(0)
})
