import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { expect, onTestFinished, test } from 'vitest'
import { createCheckpoints } from './checkpoints.ts'

/** Two checkpoints. The newer one fails to load with `failure`. */
async function checkpointsWhere(failure: unknown) {
  const path = await mkdtemp(join(tmpdir(), 'check points-'))
  onTestFinished(() => rm(path, { recursive: true }))
  for (const step of ['step-000001', 'step-000002']) await mkdir(join(path, 'checkpoints', step), { recursive: true })
  const loaded: string[] = []
  const learner = {
    save: async () => {},
    load: async (directory: string) => {
      loaded.push(directory)
      if (directory.endsWith('2')) throw failure
    },
  }
  const warnings: string[] = []
  const checkpoints = createCheckpoints({ learner, store: { path }, warn: (code) => void warnings.push(code) })
  return { checkpoints, loaded, warnings }
}

test.each([new TrainError('CHECKPOINT_CORRUPT', 'cut'), new SyntaxError('no JSON')])(
  'after %s the checkpoint before is loaded',
  async (failure) => {
    const { checkpoints, warnings } = await checkpointsWhere(failure)
    expect(await checkpoints.restore(2)).toBe(1)
    expect(warnings).toEqual(['CHECKPOINT_CORRUPT'])
  },
)

test.each(['CONFIG_INVALID', 'POLICY_UNAVAILABLE', 'POLICY_RATE_LIMITED'] as const)(
  '%s says nothing of the checkpoint, so that no step is lost',
  async (code) => {
    const { checkpoints, loaded, warnings } = await checkpointsWhere(new TrainError(code, 'not now'))
    await expect(checkpoints.restore(2)).rejects.toMatchObject({ code })
    expect(loaded).toHaveLength(1)
    expect(warnings).toEqual([])
  },
)
