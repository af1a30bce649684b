import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runNpm } from './run-npm.ts'

const installDeadlineMs = 10 * 60_000

/** Installs the lock file of a folder if it is not installed or has changed. Scripts of packages do not run. */
export async function installLocked(folder: string): Promise<void> {
  const lock = await readFile(join(folder, 'package-lock.json'))
  const expected = createHash('sha256').update(lock).digest('hex')
  const stamp = join(folder, 'node_modules', '.aworld-train-stamp')
  if ((await readFile(stamp, 'utf8').catch(() => '')) === expected) return
  console.log(`Installing the packages of ${folder} …`)
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { code, output } = await runNpm(args, folder, AbortSignal.timeout(installDeadlineMs))
  if (code !== 0) throw new Error(`Packages could not be installed: npm ${args.join(' ')} in ${folder} ended with ${code}:\n${output}`)
  await writeFile(stamp, expected)
}
