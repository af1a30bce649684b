import { expect, test } from 'vitest'
import { Drains } from './drains.ts'

const never = new AbortController().signal

test('a drain ends with the last call at its own replicas', async () => {
  const drains = new Drains()
  const [first, second, other] = [{ inFlight: 1 }, { inFlight: 2 }, { inFlight: 1 }]
  const ends: string[] = []
  const both = drains.until([first, second], never).then(() => ends.push('both'))
  const one = drains.until([first], never).then(() => ends.push('first'))
  first.inFlight = 0
  drains.check()
  await one
  second.inFlight = 1
  drains.check()
  await Promise.resolve()
  expect(ends).toEqual(['first'])
  second.inFlight = 0
  drains.check()
  await both
  expect(other.inFlight).toBe(1)
})

test('a drain of idle replicas has ended, and an aborted one rejects with the reason and stays so', async () => {
  const drains = new Drains()
  await drains.until([{ inFlight: 0 }], never)
  const busy = { inFlight: 1 }
  const stop = new AbortController()
  const drained = drains.until([busy], stop.signal)
  stop.abort(new Error('given up'))
  busy.inFlight = 0
  drains.check()
  await expect(drained).rejects.toThrow('given up')
  await expect(drains.until([busy], stop.signal)).rejects.toThrow('given up')
})
