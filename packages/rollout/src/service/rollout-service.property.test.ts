import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../testing/memory-store.ts'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { startService } from './start-service.test-support.ts'

type ModelRollout = { variant: number; status: 'running' | 'done' | 'cancelled' | 'interrupted' }
type Command = { readonly kind: 'submit' | 'cancel' | 'finish' | 'restart'; readonly key: string; readonly variant: number }

const key = fc.constantFrom('a', 'b', 'c')
const command: fc.Arbitrary<Command> = fc.record({
  kind: fc.oneof(
    { weight: 5, arbitrary: fc.constant('submit' as const) },
    { weight: 2, arbitrary: fc.constant('cancel' as const) },
    { weight: 3, arbitrary: fc.constant('finish' as const) },
    { weight: 1, arbitrary: fc.constant('restart' as const) },
  ),
  key,
  variant: fc.integer({ min: 0, max: 1 }),
})

const requestOf = (key: string, variant: number) => rolloutRequest(key, { sample: variant })
const bytesOf = (key: string, variant: number) => Buffer.byteLength(JSON.stringify(requestOf(key, variant)))

test('whatever is submitted, cancelled, finished and restarted: one request and at most one result a key, and counts that add up', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 30 }), async (commands) => {
      const store = memoryStore()
      const holds = new Map<string, () => void>()
      const hold = async (task: { readonly id: string }, { signal }: { readonly signal: AbortSignal }) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        holds.set(task.id, resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
        await promise
        signal.throwIfAborted()
      }
      const start = () => startService({ store, concurrency: 10, before: hold }).service
      const rollouts = new Map<string, ModelRollout>()
      const results = new Map<string, number>()
      let service = start()
      let ended = { done: 0, cancelled: 0 }

      for (const { kind, key, variant } of commands) {
        const before = rollouts.get(key)
        if (kind === 'submit') {
          if (before && before.variant !== variant)
            expect(() => service.submit(requestOf(key, variant))).toThrow(expect.objectContaining({ code: 'ROLLOUT_CONFLICT' }))
          else {
            const { status } = service.submit(requestOf(key, variant))
            const stands = before?.status === 'running' || before?.status === 'done'
            expect(status).toBe(stands ? before.status : 'queued')
            if (!stands) {
              rollouts.set(key, { variant, status: 'running' })
              await expect.poll(() => holds.has(`task-${key}`), { interval: 1 }).toBe(true)
            }
          }
        } else if (kind === 'cancel') {
          if (!before) await expect(service.cancel(key)).rejects.toMatchObject({ code: 'ROLLOUT_UNKNOWN' })
          else {
            const { status } = await service.cancel(key)
            if (before.status === 'running') {
              before.status = 'cancelled'
              ended.cancelled++
              holds.delete(`task-${key}`)
            }
            expect(status).toBe(before.status)
          }
        } else if (kind === 'finish' && before?.status === 'running') {
          holds.get(`task-${key}`)!()
          holds.delete(`task-${key}`)
          const { status, episode } = await service.wait(key, { timeoutMs: 60_000 })
          expect([status, episode?.rollout]).toEqual(['done', key])
          before.status = 'done'
          results.set(key, episode!.attempt)
          ended.done++
        } else if (kind === 'restart') {
          await service.close()
          holds.clear()
          for (const each of rollouts.values()) if (each.status !== 'done') each.status = 'interrupted'
          service = start()
          ended = { done: 0, cancelled: 0 }
        }
        const running = [...rollouts].filter(([, { status }]) => status === 'running')
        expect(service.counts()).toMatchObject({
          ...ended,
          queued: 0,
          running: running.length,
          queuedBytes: running.reduce((sum, [each, { variant: which }]) => sum + bytesOf(each, which), 0),
          oldestQueuedMs: 0,
          failed: 0,
        })
        for (const [each, { status, variant: which }] of rollouts) {
          const state = service.get(each)
          expect([each, state.status, state.episode?.sample]).toEqual([each, status, status === 'done' ? which : undefined])
          if (state.episode) expect(state.episode.attempt).toBe(results.get(each))
        }
      }
      await service.close()
      expect(service.counts()).toMatchObject({ running: 0, queued: 0, queuedBytes: 0 })
    }),
    { numRuns: 40 },
  )
})
