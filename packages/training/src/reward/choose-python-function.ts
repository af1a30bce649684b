import { basename, extname } from 'node:path'
import { didYouMean, TrainError } from '@aworld-train/core'
import type { PythonFunction } from './python-process.ts'
import type { RewardReference } from './reward-module.ts'

const parameters = '(data_source, solution_str, ground_truth, extra_info=None)'

/**
 * Chooses the named function or, without a name, the one named as the file, verl's `compute_score`, or the only one. MODULE_INVALID lists
 * the functions of the file and how one must take its values.
 */
export function choosePythonFunction(functions: readonly PythonFunction[], { path, exportName }: RewardReference): PythonFunction {
  const ownFunctions = functions.filter((each) => each.own)
  const find = (name: string) => functions.find((each) => each.name === name)
  const chosen =
    exportName === null
      ? (find(basename(path, extname(path)).replaceAll('-', '_')) ??
        find('compute_score') ??
        (ownFunctions.length === 1 ? ownFunctions[0] : undefined))
      : find(exportName)
  const has = ownFunctions.length === 0 ? 'no function' : ownFunctions.map(({ name }) => `"${name}"`).join(', ')
  if (!chosen) {
    const names = ownFunctions.map(({ name }) => name)
    throw new TrainError(
      'MODULE_INVALID',
      exportName === null
        ? `${path} has ${has}; name the reward among them, as ./reward.py#name.`
        : `${path} has no function "${exportName}".${didYouMean(exportName, names)} It has ${has}.`,
    )
  }
  if (!chosen.keywords && !chosen.positions) {
    throw new TrainError(
      'MODULE_INVALID',
      `"${chosen.name}" of ${path} takes ${chosen.signature}; a reward is called with four values: ${parameters}, and with model where it takes that too.`,
    )
  }
  return chosen
}
