import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { Episode, TrainError, TrainingSample, toTrainingSamples } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { writeParquetRows } from '@aworld-train/training'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { exportModel } from './export-model.ts'
import { unknownPolicy } from './unknown-policy.ts'
import { writeTarget } from './write-target.ts'

export const exportRun = defineCommand({
  arguments: [{ name: 'run', description: 'run directory', required: true }],
  options: z.object({
    to: z.string().describe('file to write, .jsonl or .parquet, whose columns have the same types for every run; for a model the folder'),
    what: z
      .enum(['samples', 'episodes', 'model'])
      .default('samples')
      .describe('training samples (tokens, mask, logprobs, reward), whole episodes, or the trained model as a Hugging Face folder'),
    step: z.int().min(1).optional().describe('checkpoint to export, with --what model (default: the newest)'),
    policy: z.string().optional().describe('of a run with several policies: the one whose model or samples are written'),
    dtype: z.enum(['keep', 'bfloat16']).default('keep').describe('of the exported weights: as they were trained, or bfloat16'),
    split: z.string().default('train').describe('which split: train, test, validation, or all, held-out ones included'),
    minReward: z.number().optional().describe('only episodes with at least this reward'),
  }),
  async run({ args, options, signal }) {
    const target = resolve(options.to)
    if (options.what === 'model') {
      await exportModel({ run: args[0] as string, target, step: options.step, policy: options.policy, dtype: options.dtype, signal })
      return undefined
    }
    const { what, minReward, policy } = options
    if (what === 'episodes' && policy !== undefined)
      throw new TrainError('CONFIG_INVALID', 'An episode is of all its policies; leave out --policy, or write samples.')
    const split = options.split === 'all' ? undefined : options.split
    const format = extname(target)
    if (format !== '.jsonl' && format !== '.parquet')
      throw new TrainError('CONFIG_INVALID', `"${options.to}" ends in neither .jsonl nor .parquet; choose one.`)
    const run = readRun(args[0] as string)
    try {
      const rows = exportRows(run.episodes({ split, minReward }), what, policy)
      const count = await writeTarget(options.to, () =>
        format === '.jsonl' ? writeJsonLines(rows, target) : writeParquet(what, rows, target),
      )
      if (count === 0) {
        const policies = policy === undefined ? [] : policiesOf(run.episodes({}))
        if (policies.length > 0 && !policies.includes(policy!)) throw unknownPolicy(`episode of ${args[0]}`, policy!, policies)
        const splits = Object.entries(run.splits()).map(([name, episodes]) => `${name} ${episodes}`)
        throw new TrainError(
          'CONFIG_INVALID',
          `No ${what} of ${args[0]} match, so nothing was written. Its episodes by split: ${splits.join(', ') || 'none'}; choose one with --split${minReward === undefined ? '' : ', or leave out --min-reward'}.`,
        )
      }
      process.stdout.write(`${count} ${what} of ${split === undefined ? 'all splits' : `split ${split}`} written to ${options.to}\n`)
      return undefined
    } finally {
      run.close()
    }
  },
})

function* exportRows(
  episodes: Iterable<Episode>,
  what: 'samples' | 'episodes',
  policy: string | undefined,
): Generator<Record<string, unknown>> {
  for (const episode of episodes) {
    if (what === 'episodes') yield z.encode(Episode, episode)
    else for (const sample of toTrainingSamples(episode, { policy }).samples) yield z.encode(TrainingSample, sample)
  }
}

/** Names of the policies in these episodes. */
function policiesOf(episodes: Iterable<Episode>): string[] {
  const names = new Set<string>()
  for (const { trajectories } of episodes) for (const { policy } of trajectories) names.add(policy)
  return [...names]
}

async function writeParquet(what: 'samples' | 'episodes', rows: Iterable<object>, target: string): Promise<number> {
  const all = [...rows]
  if (all.length === 0) return 0
  if (what === 'episodes') await writeParquetRows(Episode, all as z.input<typeof Episode>[], target)
  else await writeParquetRows(TrainingSample, all as z.input<typeof TrainingSample>[], target)
  return all.length
}

async function writeJsonLines(rows: Iterable<unknown>, target: string): Promise<number> {
  const temporary = `${target}.${process.pid}.tmp`
  const stream = createWriteStream(temporary)
  let count = 0
  try {
    for (const row of rows) {
      count += 1
      if (!stream.write(`${JSON.stringify(row)}\n`)) await once(stream, 'drain')
    }
    stream.end()
    await once(stream, 'close')
    if (count === 0) await rm(temporary)
    else await rename(temporary, target)
    return count
  } catch (error) {
    stream.destroy()
    await rm(temporary, { force: true })
    throw error
  }
}
