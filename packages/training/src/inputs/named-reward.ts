import { resolve } from 'node:path'
import { type Reward, TrainError, type TrainerKeys } from '@aworld-train/core'
import type { LocalConfig } from '../config/local-config.ts'
import { type CreateRewardOptions, createReward, type RewardSource } from '../reward/create-reward.ts'
import { isPythonReward, toRewardReference } from '../reward/reward-module.ts'

export interface NamedReward {
  readonly source: RewardSource
  /** Folder that a path is relative to. */
  readonly directory: string
}

/** The file that a configuration names, and the function in it. */
export type RewardPath = Pick<LocalConfig['reward'], 'path' | 'name'>

export interface RewardNames extends RewardPath {
  readonly reward: RewardSource | undefined
  readonly baseDirectory: string
  readonly configDirectory: string
  /** Interpreter for a reward in Python, if it is not the default one. */
  readonly python?: string | undefined
}

/**
 * Finds the reward of an option or the configuration, and tries it once if the configuration names it; `null` if neither has one. Throws
 * CONFIG_INVALID for two that differ.
 */
export async function findReward({ reward, baseDirectory, path, name, configDirectory, python }: RewardNames): Promise<NamedReward | null> {
  const named = rewardOfPath({ path, name }, configDirectory)
  if (reward !== undefined && named !== null && wholePath(reward, baseDirectory) !== named.source) {
    throw new TrainError('CONFIG_INVALID', 'rewardFunc and reward.path of the configuration are two different rewards; keep one.')
  }
  if (reward !== undefined) return { source: reward, directory: baseDirectory }
  if (named !== null) await tryReward(named.source, configDirectory, python)
  return named
}

/** Finds the reward as `findReward` does. Throws CONFIG_INVALID if there is none. */
export async function requireReward(
  names: RewardNames,
  trainer: string,
  { reward, nativeReward }: Pick<TrainerKeys, 'reward' | 'nativeReward'>,
): Promise<NamedReward> {
  const found = await findReward(names)
  if (found !== null) return found
  const key = `${nativeReward === null ? 'or ' : ''}name ${reward} in the configuration`
  const native = nativeReward === null ? '' : `, or set ${nativeReward} for the one of ${trainer}`
  throw new TrainError('CONFIG_INVALID', `There is no reward; pass rewardFunc, ${key}${native}.`)
}

/** The reward that a configuration names; `null` if it names none. */
export const rewardOfPath = ({ path, name }: RewardPath, directory: string): NamedReward | null =>
  path === null ? null : { source: `${resolve(directory, path)}${name === null ? '' : `#${name}`}`, directory }

/** A reward by its absolute path, so that `./reward.ts#score` and `/project/reward.ts#score` are equal. */
function wholePath(reward: RewardSource, directory: string): RewardSource {
  if (typeof reward !== 'string') return reward
  const hash = reward.lastIndexOf('#')
  return hash < 0 ? resolve(directory, reward) : `${resolve(directory, reward.slice(0, hash))}${reward.slice(hash)}`
}

/** Creates the reward within the limits of a configuration. */
export const createNamedReward = (
  { source, directory }: NamedReward,
  { timeoutMs, memoryMb, input: rewardInput, concurrency }: Pick<LocalConfig['reward'], 'timeoutMs' | 'memoryMb' | 'input' | 'concurrency'>,
  /** Names of the frozen models that it may ask. */
  models: readonly string[],
  parts: Pick<CreateRewardOptions, 'python' | 'openVerifier'> = {},
): Promise<Reward> =>
  createReward(source, {
    baseDirectory: directory,
    timeoutMs,
    memoryMb,
    concurrency: concurrency ?? (models.length > 0 ? 8 : null),
    rewardInput,
    ...parts,
  })

/** Throws CONFIG_INVALID for a reward that sees groups, where `why` says what stands against it. */
export async function refuseGroupReward({ source, directory }: NamedReward, why: string): Promise<void> {
  // A function of Python scores an episode; others must be loaded to know.
  if (typeof source === 'string' && isPythonReward(toRewardReference(source, directory))) return
  const reward = await createReward(source, { baseDirectory: directory })
  await reward.close()
  if (!reward.scoreGroup) return
  const message = `Reward "${reward.name}" compares the rollouts of a group, and ${why}. Let a judge score each rollout by itself, with rubricReward({ judge, criteria }).`
  throw new TrainError('CONFIG_INVALID', message)
}

/** Loads the reward once. Throws the error of the loading. */
export async function tryReward(source: RewardSource, directory: string, python?: string): Promise<void> {
  const reward = await createReward(source, { baseDirectory: directory, python })
  await reward.close()
}
