import type { StepSample } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { openRunStore } from './open-run-store.ts'
import { readRun } from './run-reader.ts'
import { episodeOf, runRequest, temporaryFolder, turnChain } from './testing/run-fixtures.ts'

const sample = (rollout: string, step: number, more: Partial<StepSample> = {}): StepSample => ({
  rollout,
  agent: 'agent',
  trajectory: 'agent',
  step,
  turns: [0, 2],
  tokens: 6,
  advantage: 0.5,
  reason: null,
  trainerLogprobs: null,
  ...more,
})
const step = (number: number, rollouts: readonly string[]) => ({ step: number, weightVersion: 1, rollouts, metrics: {}, checkpoint: null })

test.each([false, true])('rows of a step are kept with it, or not at all (written in a thread: %s)', async (thread) => {
  await using folder = await temporaryFolder()
  const store = await openRunStore({ path: folder.path, thread })
  for (const key of ['a', 'b']) {
    await store.begin(runRequest(key))
    await store.finish(episodeOf(runRequest(key), 0, turnChain(0, 3)))
  }
  await store.queue(runRequest('waiting'))
  const trainerLogprobs = Float32Array.from([-0.1, -2, -0.5, -Infinity, 0, -3])
  const first = [sample('b', 1, { trainerLogprobs }), sample('a', 1, { advantage: null, reason: 'zero-variance-group' })]
  await store.commitStep(step(1, ['b']), first)
  for (const rollout of ['unknown', 'waiting'])
    await expect(store.commitStep(step(2, ['a']), [sample('a', 2), sample(rollout, 2)])).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
  expect(store.steps().map((each) => each.step)).toEqual([1])
  await store.commitStep(step(1, ['b']), first)
  const second = [sample('a', 2, { agent: 'worker', advantage: -1 })]
  await store.commitStep(step(2, ['a']), second)
  await store.close()
  const run = readRun(folder.path)
  expect(run.samples({ step: 1 })).toEqual(first)
  expect(run.samples({ rollout: 'a' })).toEqual([first[1], second[0]])
  expect(run.samples({ rollout: 'a', step: 2 })).toEqual(second)
  const summaries = [...first, ...second].map(({ trainerLogprobs: _, ...each }) => each)
  expect(run.samplesOf(['a', 'b', 'nothing', 'waiting'])).toEqual(summaries)
  expect(run.samplesOf(['b'])).toEqual(summaries.slice(0, 1))
  expect([run.samples({ step: 3 }), run.sampleTokens(3)]).toEqual([[], []])
  const tokens = [
    { agent: 'agent', reason: null, tokens: 6 },
    { agent: 'agent', reason: 'zero-variance-group', tokens: 6 },
  ]
  expect(run.sampleTokens(1)).toEqual(tokens)
  expect(run.agentTokens()).toMatchObject({
    agent: { trained: 6, untrained: { 'zero-variance-group': 6 } },
    worker: { sampled: 0, trained: 6 },
  })
  expect(run.stepMetrics()).toEqual([1, 2].map((number) => ({ step: number, weightVersion: 1, metrics: {}, checkpoint: null })))
  run.close()
})
