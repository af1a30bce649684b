import { readCheckpoint } from '../../packages/engines/src/local/files/checkpoint.ts'
import { loadModelFolder } from '../../packages/engines/src/local/files/model-files.ts'
import { createTrainer } from '../../packages/engines/src/local/goldens/trainer.ts'
import { chooseTier } from '../../packages/engines/src/local/kernels/load-kernels.ts'
import type { ModelConfig } from '../../packages/engines/src/local/model-config.ts'

/** Learners as the engine opens them with two threads, one that folds and one that does not, over a folder's weights or random ones. */
export async function openTrainers(model: string | ModelConfig) {
  const config = typeof model === 'string' ? (await loadModelFolder(model)).config : model
  const batchTokens = Math.max(65_536, 4 * config.contextLength)
  const options = { model: config, tier: chooseTier(), microBatchTokens: 512, batchTokens, batchRows: 4_096 }
  const [folding, unfolded] = [await createTrainer({ ...options, folds: true }), await createTrainer({ ...options, folds: false })]
  for (const trainer of typeof model === 'string' ? [folding, unfolded] : []) {
    const { parameters } = await readCheckpoint(model as string, trainer.pool.layout.table.parameters)
    await trainer.setParameters(parameters)
  }
  return {
    of: (folds: boolean) => (folds ? folding : unfolded),
    [Symbol.asyncDispose]: async () => void (await Promise.all([folding.pool.close(), unfolded.pool.close()])),
  }
}

/** Measures with and without folding one after the other, in an order that `turn` changes. */
export async function inTurns(turn: number, measure: (folds: boolean) => Promise<number>) {
  const first = turn % 2 === 0
  const [one, other] = [await measure(first), await measure(!first)]
  return first ? { folded: one, unfolded: other } : { folded: other, unfolded: one }
}

/** Milliseconds of CPU of this process, with all its threads, while `work` runs. */
export async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
