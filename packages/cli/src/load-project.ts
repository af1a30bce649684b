import { existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorMessage, TrainError } from '@aworld-train/core'
import type { TrainingDefinition } from 'aworld-train'

/** Names of the file of a project. */
export const projectFileNames: readonly string[] = ['aworld-train.config.ts', 'aworld-train.config.js', 'aworld-train.config.mjs']

export interface Project {
  readonly file: string
  readonly definition: TrainingDefinition
}

/** Loads the training definition in a folder, or in a named file. MODULE_INVALID names the missing part. */
export async function loadProject(target = '.'): Promise<Project> {
  const path = resolve(target)
  if (!existsSync(path))
    throw new TrainError('MODULE_INVALID', `There is no ${path}; name the folder of a project, or make one with "aworld-train init".`)
  const file = statSync(path).isDirectory() ? projectFileNames.map((name) => join(path, name)).find((each) => existsSync(each)) : path
  if (!file)
    throw new TrainError(
      'MODULE_INVALID',
      `${path} has no ${projectFileNames[0]}; make a project with "aworld-train init", or name another folder.`,
    )
  let module: { default?: unknown }
  try {
    module = (await import(pathToFileURL(file).href)) as { default?: unknown }
  } catch (cause) {
    if (cause instanceof TrainError) throw cause
    throw new TrainError('MODULE_INVALID', `${file} could not be loaded: ${errorMessage(cause)}`, {
      cause,
    })
  }
  const definition = module.default
  if (typeof definition !== 'object' || definition === null) {
    throw new TrainError('MODULE_INVALID', `${file} has no default export; write "export default defineTraining({ … })".`)
  }
  return { file, definition: { baseDirectory: dirname(file), ...(definition as TrainingDefinition) } }
}
