import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { TrainError } from '@aworld-train/core'

/**
 * Path of a saved model with this name, below `checkpoints` of the run at `path`. Throws CONFIG_INVALID for a name that leads elsewhere, or
 * that the run uses itself.
 */
export async function checkpointPath(path: string, name: string): Promise<string> {
  const folder = resolve(path, 'checkpoints')
  const target = resolve(folder, String(name))
  const refuse = (why: string) => {
    const message = `saveModel(${JSON.stringify(name)}) would write ${target}, ${why}. Give it a name of its own, such as "last" or "rounds/1".`
    return new TrainError('CONFIG_INVALID', message, { details: { name, path: target } })
  }
  if (!isBelow(folder, target)) throw refuse(`which is not below ${folder}`)
  const [first] = relative(folder, target).split(sep) as [string]
  if (/^\.|^(?:best-)?step-\d+$/.test(first)) throw refuse('where the run keeps checkpoints of its own')
  let existing = target
  while (!existsSync(existing)) existing = dirname(existing)
  const real = await realpath(existing)
  const run = await realpath(path)
  if (real !== run && !isBelow(run, real)) throw refuse(`which leads out of the run to ${real}`)
  return target
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '' && way !== '..' && !way.startsWith(join('..', sep)) && !isAbsolute(way)
}
