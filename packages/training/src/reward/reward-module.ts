import { existsSync } from 'node:fs'
import { basename, extname, resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'

/** A module and, if it was named, one of its exports. */
export interface RewardReference {
  /** Absolute. */
  readonly path: string
  /** `null`: the default export, one named as the file, or the only one. */
  readonly exportName: string | null
}

/** Parses `./reward.ts#name` or `./reward.py#name`. Throws MODULE_INVALID if the file does not exist. */
export function toRewardReference(source: string, baseDirectory: string): RewardReference {
  const hash = source.lastIndexOf('#')
  const path = resolve(baseDirectory, hash < 0 ? source : source.slice(0, hash))
  const exportName = hash < 0 ? null : source.slice(hash + 1)
  if (exportName === '') throw new TrainError('MODULE_INVALID', `"${source}" names no export after "#"; write ./reward.ts#name.`)
  if (!existsSync(path))
    throw new TrainError('MODULE_INVALID', `There is no reward module ${path}; name one as ./reward.ts#name or ./reward.py#name.`)
  if (!/\.(?:[cm]?[jt]s|py)$/.test(path)) {
    throw new TrainError(
      'MODULE_INVALID',
      `${path} is no module of TypeScript, JavaScript or Python; a reward by path is one, as ./reward.ts#name or ./reward.py#name.`,
    )
  }
  return { path, exportName }
}

/** Whether a reward is a function of a Python file. */
export const isPythonReward = ({ path }: RewardReference): boolean => extname(path) === '.py'

/** The default name of a module's export, made from the name of the file. */
export function fileNameAsExport(path: string): string {
  return basename(path, extname(path)).replace(/[-_]+(\w)/g, (_, letter: string) => letter.toUpperCase())
}
