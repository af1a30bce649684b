import { readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Removes what a killed process left half-written in the run: temporary files and an unfinished model. */
export async function removeUnfinished(path: string): Promise<void> {
  for (const name of await readdir(path)) {
    if (/\.\d+\.tmp$|^\.model-/.test(name)) await rm(join(path, name), { recursive: true, force: true })
  }
}

/** Versions of the packages, of Node and of the platform. */
export function runVersions(): Record<string, string> {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return { 'aworld-train': manifest.version, node: process.version.slice(1), platform: `${process.platform}-${process.arch}` }
}
