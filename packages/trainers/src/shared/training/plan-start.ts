import { existsSync, readFileSync } from 'node:fs'
import { extname, isAbsolute, join, resolve } from 'node:path'
import { type PlanInputs, TrainError, type TrainerPlan } from '@aworld-train/core'
import type { LoadedAgent, LoadedDataset, NamedReward } from '@aworld-train/training'
import { bridgeDirectory } from '../python-package.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

export interface PlanInputParts extends Pick<PlanInputs, 'path' | 'name' | 'agent' | 'python' | 'incarnation' | 'resume'> {
  readonly train: LoadedDataset
  readonly test: LoadedDataset | null
  readonly reward: NamedReward | null
  /** The model that the training begins with. Before the warm-up, its folder does not exist. */
  readonly model: string
}

/** A run as a framework's plan needs it. Data files are those of the run directory. */
export function toPlanInputs({ path, train, test, reward, ...rest }: PlanInputParts): PlanInputs {
  return {
    ...rest,
    path,
    train: { path: join(path, 'train_data.parquet'), rows: train.tasks.length },
    test: test && { path: join(path, 'test_data.parquet'), rows: test.tasks.length },
    reward: reward && typeof reward.source === 'string' ? rewardFile(reward.source, reward.directory) : null,
    bridgeDirectory,
    contextLength: contextLengthOf(rest.model),
  }
}

/**
 * Plans a start for a run directory, with the model of the warm-up if there is one, and has the framework check it. Throws CONFIG_INVALID
 * with every problem.
 */
export async function planStart(
  plan: PythonTrainingPlan,
  parts: { path: string; name: string; model: string; incarnation: string; resume: boolean },
  signal: AbortSignal | undefined,
): Promise<TrainerPlan> {
  const { trainer, config, agent, train, test, reward, python } = plan
  const run = toPlanInputs({ agent: describeAgent(agent), train, test, reward, python: python.path, ...parts })
  const planned = await trainer.plan(config, run, { validate: true, signal })
  const { problems, version } = planned
  if (problems.length === 0) return planned
  const message = `${trainer.name} ${version} would not train with this configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`
  throw new TrainError('CONFIG_INVALID', message, { details: { problems } })
}

function rewardFile(source: string, directory: string): { path: string; name: string | null } {
  const hash = source.lastIndexOf('#')
  const file = hash < 0 ? source : source.slice(0, hash)
  return { path: isAbsolute(file) ? file : resolve(directory, file), name: hash < 0 ? null : source.slice(hash + 1) }
}

/** Describes the agent of a run. A module is named by its absolute path. */
export function describeAgent({ program, module, directory, files }: LoadedAgent): PlanInputs['agent'] {
  const yaml = files.find((file) => ['.yaml', '.yml'].includes(extname(file)))
  const name = module?.split('#')[1]
  return {
    name: program.agents.find(({ trainable }) => trainable)?.name ?? 'agent',
    module: module === null ? null : `${files.at(-1)}${name === undefined ? '' : `#${name}`}`,
    directory,
    source: yaml === undefined ? null : readFileSync(yaml, 'utf8'),
  }
}

/** `max_position_embeddings` of a model's config.json, in tokens; `null` if there is none, as for a name on the Hub. */
export function contextLengthOf(model: string): number | null {
  const file = join(model, 'config.json')
  if (!existsSync(file)) return null
  const config = JSON.parse(readFileSync(file, 'utf8')) as { max_position_embeddings?: unknown }
  return typeof config.max_position_embeddings === 'number' ? config.max_position_embeddings : null
}
