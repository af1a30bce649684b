import { expect, it } from 'vitest'
import { firstFailure } from './first-failure.ts'

it('is the error of the work, not those of closing after it', async () => {
  const work = async () => {
    await using stack = new AsyncDisposableStack()
    for (const name of ['store', 'engine']) stack.defer(() => Promise.reject(new Error(`${name} cannot be closed`)))
    throw new Error('the disk is full')
  }
  const error = await work().catch(firstFailure)
  expect(error).toMatchObject({ message: 'the disk is full' })
  expect(firstFailure(error)).toBe(error)
})
