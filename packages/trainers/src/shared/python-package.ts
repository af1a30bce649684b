import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder for PYTHONPATH that holds the Python package `aworld_train_bridge`. */
export const bridgeDirectory: string = fileURLToPath(new URL('../../python', import.meta.url))

/** Variables for a Python that imports the bridge, whose package comes before the folders of PYTHONPATH. */
export function withBridge(env: NodeJS.ProcessEnv, directory: string = bridgeDirectory): Record<string, string> {
  const own = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { ...Object.fromEntries(own), PYTHONPATH: [directory, env['PYTHONPATH']].filter(Boolean).join(delimiter) }
}
