import type { Learner, TrainingSample } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { checkLogprobs } from './check-logprobs.ts'

/** Its weights give every token the logprob -1. */
const learner = {
  logprobs: async (rows: readonly Int32Array[]) => rows.map((row) => new Float32Array(row.length).fill(-1)),
} as Pick<Learner, 'logprobs'> as Learner

const sample = (version: number, sampled: number) =>
  ({
    tokenIds: Int32Array.of(1, 2),
    lossMask: Uint8Array.of(0, 1),
    rolloutLogprobs: Float32Array.of(0, sampled),
    weightVersions: [{ fromToken: 1, version }],
    policy: 'lead',
    provenance: { rollout: `of version ${version}` },
  }) as unknown as TrainingSample

it('of samples of several versions only those of the weights of now are to agree with them', async () => {
  const samples = [sample(3, -4), sample(4, -1.25)]
  const check = { tokens: 100, tolerance: 0.5, temperature: 1 }
  expect(await checkLogprobs(learner, samples, { ...check, weightVersion: 4 })).toBe(0.25)
  await expect(checkLogprobs(learner, samples, check)).rejects.toMatchObject({
    code: 'POLICY_LOGPROB_MISMATCH',
    message: expect.stringContaining('rollout "of version 3"'),
  })
  expect(await checkLogprobs(learner, samples, { ...check, weightVersion: 5 })).toBe(null)
})

it('samples of every policy are checked, however few tokens are', async () => {
  const rows = Array.from({ length: 64 }, (_, i) => (i % 2 === 0 ? sample(4, -1) : { ...sample(4, -3), policy: 'reader' }))
  const check = { tokens: 1, tolerance: 0.5, temperature: 1 }
  await expect(checkLogprobs(learner, rows, check)).rejects.toMatchObject({ code: 'POLICY_LOGPROB_MISMATCH' })
})
