import { didYouMean, TrainError } from '@aworld-train/core'
import { type DefinedGroupReward, isDefinedGroupReward } from './define-group-reward.ts'
import { type DefinedReward, isDefinedReward, type RewardFunction } from './define-reward.ts'
import { fileNameAsExport } from './reward-module.ts'

export interface ChosenExport {
  readonly name: string
  readonly value: RewardFunction | DefinedReward | DefinedGroupReward
}

/**
 * Chooses the named export or, without a name, the default, the one named as the file, or the only reward. Throws MODULE_INVALID otherwise.
 */
export function chooseExport(module: Readonly<Record<string, unknown>>, path: string, exportName: string | null): ChosenExport {
  const rewards = Object.keys(module).filter((name) => isReward(module[name]))
  if (exportName !== null) {
    if (!(exportName in module)) {
      throw new TrainError(
        'MODULE_INVALID',
        `${path} has no export "${exportName}".${didYouMean(exportName, rewards)} It exports ${list(module)}.`,
      )
    }
    const value = module[exportName]
    if (!isReward(value)) {
      throw new TrainError('MODULE_INVALID', `"${exportName}" of ${path} is no reward; export a function, or defineReward(…).`)
    }
    return { name: exportName, value }
  }
  const name = ['default', fileNameAsExport(path)].find((each) => rewards.includes(each)) ?? (rewards.length === 1 ? rewards[0]! : null)
  if (name === null) {
    throw new TrainError('MODULE_INVALID', `${path} exports ${list(module)}; name the reward among them, as ./reward.ts#name.`)
  }
  return { name, value: module[name] as ChosenExport['value'] }
}

function isReward(value: unknown): value is ChosenExport['value'] {
  return typeof value === 'function' || isDefinedReward(value) || isDefinedGroupReward(value)
}

const list = (module: Readonly<Record<string, unknown>>) =>
  Object.keys(module)
    .map((name) => `"${name}"`)
    .join(', ') || 'nothing'
