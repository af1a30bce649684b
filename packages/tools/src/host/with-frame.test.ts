import { type Sandbox, TrainError, type Workspace } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { createLease } from '../leases/lease.ts'
import { memorySandbox } from '../testing/memory-sandbox.ts'
import { withFrame } from './with-frame.ts'

const result = { content: [{ type: 'text' as const, text: 'done' }] }

/** A lease whose X server starts as `program` does. */
function leaseWith(program: Workspace['program']) {
  const errors: Error[] = []
  const memory = memorySandbox()
  const sandbox: Sandbox = { ...memory, workspace: async (...options) => ({ ...(await memory.workspace(...options)), program }) }
  const lease = createLease({
    ...{ id: 'l1', rollout: 'r1', attempt: 0, task: null, hasDesktop: true, limits: {}, net: false, sandbox, ttlMs: 60_000 },
    openEgress: async () => Promise.reject(new Error('There is no way out.')),
    onError: (error) => errors.push(error),
  })
  return { lease, errors }
}

it('a desktop that does not start leaves the result as it is, and the operator reads why', async () => {
  const { lease, errors } = leaseWith(async () => Promise.reject(new Error('no X server')))
  expect(await withFrame(result, lease, new AbortController().signal)).toBe(result)
  expect(errors.map(({ message }) => message)).toEqual(['no X server'])
})

it.each(['lease', 'time of the call'])('a %s that ends during the frame leaves the result as it is', async (what) => {
  const starting = Promise.withResolvers<void>()
  const { lease, errors } = leaseWith(() => {
    starting.resolve()
    return new Promise(() => {})
  })
  const call = new AbortController()
  const answered = withFrame(result, lease, call.signal)
  await starting.promise
  if (what === 'lease') await lease.end(new TrainError('LEASE_UNKNOWN', 'The lease was closed.'))
  else call.abort(new Error('late'))
  expect(await answered).toBe(result)
  expect(errors).toEqual([])
})
