import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Names of the policies whose weights are in a checkpoint of several, each in a folder with this file. */
export function policiesIn(checkpoint: string, file: 'config.json' | 'tinker.json'): string[] {
  const folders = existsSync(checkpoint) ? readdirSync(checkpoint) : []
  return folders.filter((name) => existsSync(join(checkpoint, name, file))).sort()
}
