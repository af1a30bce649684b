import { expect, test } from 'vitest'
import { compareLogprobs, type SampledCheck } from './check-weights.ts'

const row = (server: string, ...logprobs: number[]): SampledCheck => ({
  server,
  promptTokenIds: Int32Array.of(7, 8),
  tokenIds: Int32Array.from(logprobs, (_, index) => index),
  logprobs: Float32Array.from(logprobs),
})
const recompute =
  (...rows: readonly number[][]) =>
  async () =>
    rows.map((values) => Float32Array.of(0, -9, ...values))

test('the largest difference of each server is said, a difference of 0 too', async () => {
  const sampled = [row('a', -1, -2), row('b', -1), row('a', -0.5)]
  const found = await compareLogprobs(sampled, { recompute: recompute([-1, -2.5], [-1], [-0.25]) })
  expect([...found]).toEqual([
    ['a', 0.5],
    ['b', 0],
  ])
})

test.each([
  ['fewer logprobs than were sampled', recompute([-1])],
  ['no row', recompute()],
  ['a logprob that is none', recompute([-1, Number.NaN])],
])('%s is no agreement', async (_name, wrong) => {
  const found = await compareLogprobs([row('a', -1, -2)], { recompute: wrong })
  expect(found.get('a')! <= 1).toBe(false)
})

test('rows are prompt and completion, at the temperature that was sampled at', async () => {
  const requests: unknown[] = []
  await compareLogprobs([row('a', -1)], {
    temperature: 0.5,
    async recompute(rows, temperature) {
      requests.push(rows, temperature)
      return [Float32Array.of(0, 0, -1)]
    },
  })
  expect(requests).toEqual([[Int32Array.of(7, 8, 0)], 0.5])
})
