import { join } from 'node:path'
import type { RolloutRequest, RunEvent, StepSample } from '@aworld-train/core'
import { openRunStore, writeJsonAtomically } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { episodeOf, runRequest, turnChain } from '../../packages/store/src/testing/run-fixtures.ts'

const groupSize = 8
const stepSize = 128
/** Of a rollout: three turns of three sampled tokens. */
const turns = 3
const tokens = 9
const startedAt = 1_800_000_000_000

/** Writes a finished run of steps of 16 groups of 8 rollouts, with the event of each end, as a trainer does. */
export async function writeLongRun(path: string, rollouts: number): Promise<void> {
  const run = await openRunStore({ path, manifest: { name: 'long' } })
  await writeTinyModel({ directory: join(path, 'tokenizer'), template: 'unused' })
  const emit = (event: Record<string, unknown>) => run.appendEvent({ at: startedAt, ...event } as RunEvent)
  emit({ type: 'run-start', version: 1, run: 'long', path, seed: 1, resumedFromStep: null, details: {} })
  const steps = Math.ceil(rollouts / stepSize)
  for (let step = 1; step <= steps; step++) {
    emit({ type: 'step-start', step, steps })
    const requests = Array.from({ length: Math.min(stepSize, rollouts - (step - 1) * stepSize) }, (_, index) => toRequest(step, index))
    await Promise.all(
      requests.map(async (request, index) => {
        await run.begin(request)
        // The first group of a step has equal rewards.
        const reward = index < groupSize ? 1 : index % 2
        await run.finish(episodeOf(request, 0, turnChain(0, turns, index % 100), { reward }))
        const counts = { turns, toolCalls: 0, sampledTokens: tokens, durationMs: 60 }
        const { key: rollout, split, task } = request
        emit({ type: 'rollout-end', rollout, attempt: 0, split, taskId: task.id, stopReason: 'completed', reward, ...counts })
      }),
    )
    const metrics = { rewardMean: 0.5, entropy: 0.2, loss: -0.1, gradNorm: 0.5, stepMs: 1200, updateMs: 300, rolloutMs: 700 }
    const samples = requests.map((request, index) => toSample(request, step, index))
    const trained = samples.filter(({ reason }) => reason === null).map(({ rollout }) => rollout)
    await run.commitStep({ step, weightVersion: step + 1, rollouts: trained, metrics, checkpoint: null }, samples)
    emit({ type: 'step-end', step, steps, weightVersion: step + 1, metrics })
  }
  emit({ type: 'run-end', status: 'finished' })
  await run.close()
  await writeJsonAtomically(join(path, 'manifest.json'), { ...run.manifest, status: 'finished' })
}

function toRequest(step: number, index: number): RolloutRequest {
  const group = Math.floor(index / groupSize)
  const sample = index % groupSize
  const key = `train/${step}/${group}/${sample}`
  const { task, ...request } = runRequest(key)
  const id = `task-${(step * 16 + group) % 1_000}`
  return { ...request, task: { ...task, id }, group: `train/${step}/${group}`, sample, step, kind: group % 3 === 0 ? 'hard' : 'easy' }
}

function toSample({ key: rollout }: RolloutRequest, step: number, index: number): StepSample {
  const outcome =
    index < groupSize
      ? ({ advantage: null, reason: 'zero-variance-group', trainerLogprobs: null } as const)
      : ({ advantage: index % 2 ? 1 : -1, reason: null, trainerLogprobs: new Float32Array(tokens).fill(-0.5) } as const)
  return { rollout, agent: 'agent', trajectory: 'agent', step, turns: Array.from({ length: turns }, (_, turn) => turn), tokens, ...outcome }
}
