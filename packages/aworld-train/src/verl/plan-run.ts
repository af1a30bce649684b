import { existsSync, readFileSync } from 'node:fs'
import { extname, isAbsolute, join, resolve } from 'node:path'
import { TrainError } from '@aworld-train/protocol'
import type { NamedReward } from '@aworld-train/run'
import { bridgeDirectory, planVerl, type VerlConfig, type VerlPlan, type VerlRun } from '@aworld-train/trainer-verl'
import type { LoadedDataset } from '@aworld-train/training'
import type { LoadedAgent } from '../load/load-agent.ts'
import type { VerlTrainingPlan } from './verl-training-plan.ts'

export interface VerlRunParts {
  readonly path: string
  readonly name: string
  readonly agent: VerlRun['agent']
  readonly train: LoadedDataset
  readonly test: LoadedDataset | null
  readonly reward: NamedReward | null
  readonly model: string | null
  readonly python?: string
  readonly incarnation?: string
  readonly resume?: boolean
}

/** A run as verl's plan needs it; data files are those that the run directory gets. */
export function toVerlRun({ path, train, test, reward, model, ...rest }: VerlRunParts): VerlRun {
  return {
    ...rest,
    path,
    train: { path: join(path, 'train_data.parquet'), rows: train.tasks.length },
    test: test && { path: join(path, 'test_data.parquet'), rows: test.tasks.length },
    reward: reward && typeof reward.source === 'string' ? rewardFile(reward.source, reward.directory) : null,
    bridgeDirectory,
    contextLength: model === null ? null : contextLengthOf(model),
  }
}

/** A plan for a run directory, checked by verl itself, with the model that the warm-up made where there is one. Throws CONFIG_INVALID with all that is wrong. */
export async function planRun(
  plan: VerlTrainingPlan,
  parts: { path: string; name: string; model: string; incarnation: string; resume: boolean },
  signal: AbortSignal | undefined,
): Promise<VerlPlan> {
  const run = toVerlRun({ ...plan, python: plan.python.path, ...parts })
  const planned = await planVerl(withModel(plan.config, parts.model), run, { validate: true, signal })
  const { problems, verl } = planned
  if (problems.length === 0) return planned
  const message = `verl ${verl.version} would not train with this configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`
  throw new TrainError('CONFIG_INVALID', message, { details: { problems } })
}

/** The configuration with the model that the training begins with. */
export function withModel(config: VerlConfig, model: string): VerlConfig {
  const path = 'actor_rollout_ref.model.path'
  const key = config.keys.get(path)
  const keys = new Map(config.keys)
  return {
    ...config,
    keys: keys.set(path, { path, value: model, origin: key ? 'user' : 'derived', why: key?.why ?? 'the starting model' }),
  }
}

function rewardFile(source: string, directory: string): { path: string; name: string | null } {
  const hash = source.lastIndexOf('#')
  const file = hash < 0 ? source : source.slice(0, hash)
  return { path: isAbsolute(file) ? file : resolve(directory, file), name: hash < 0 ? null : source.slice(hash + 1) }
}

/** The agent of a run; a module is named by its absolute path. */
export function describeAgent({ program, module, directory, files }: LoadedAgent): VerlRun['agent'] {
  const yaml = files.find((file) => ['.yaml', '.yml'].includes(extname(file)))
  const name = module?.split('#')[1]
  return {
    name: program.agents.find(({ trainable }) => trainable)?.name ?? 'agent',
    module: module === null ? null : `${files.at(-1)}${name === undefined ? '' : `#${name}`}`,
    directory,
    source: yaml === undefined ? null : readFileSync(yaml, 'utf8'),
  }
}

/** `max_position_embeddings` of a model's config.json, in tokens. */
export function contextLengthOf(model: string): number | null {
  const file = join(model, 'config.json')
  if (!existsSync(file)) return null
  const config = JSON.parse(readFileSync(file, 'utf8')) as { max_position_embeddings?: unknown }
  return typeof config.max_position_embeddings === 'number' ? config.max_position_embeddings : null
}
