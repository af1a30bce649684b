import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const installDeadlineMs = 10 * 60_000

/** Installs what the lock file of a folder names, where it is missing or the lock file changed; scripts of packages do not run. */
export async function installLocked(folder: string): Promise<void> {
  const lock = await readFile(join(folder, 'package-lock.json'))
  const expected = createHash('sha256').update(lock).digest('hex')
  const stamp = join(folder, 'node_modules', '.aworld-train-stamp')
  if ((await readFile(stamp, 'utf8').catch(() => '')) === expected) return
  console.log(`Installing the packages of ${folder} …`)
  await npm(folder, ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  await writeFile(stamp, expected)
}

async function npm(folder: string, args: readonly string[]): Promise<void> {
  const script = process.env['npm_execpath']
  const [command, prefix] = script?.endsWith('.js') ? [process.execPath, [script]] : ['npm', []]
  const child = spawn(command, [...prefix, ...args], {
    cwd: folder,
    shell: command === 'npm' && process.platform === 'win32',
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.timeout(installDeadlineMs),
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-8000)
    })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code === 0) return
  throw new Error(`Packages could not be installed: npm ${args.join(' ')} in ${folder} ended with ${code}:\n${output}`)
}
