import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const environments = join(root, '.aworld-train', 'python')

export interface PythonEnvironmentOptions {
  /** Folder name of the environment. */
  readonly name: string
  /** File of pinned requirements. */
  readonly requirements: string
  /** File that replaces what packages themselves require. */
  readonly overrides?: string | undefined
  /** Packages to install last and without what they require. */
  readonly withoutDependencies?: readonly string[] | undefined
}

async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-8000)
    })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`)
}

/** The `uv` of PATH, else one that pip puts beside the environments. */
async function findUv(): Promise<{ command: string; env: NodeJS.ProcessEnv }> {
  const usable = await run('uv', ['--version']).then(
    () => true,
    () => false,
  )
  if (usable) return { command: 'uv', env: process.env }
  const target = join(environments, 'uv')
  const command = join(target, 'bin', 'uv')
  if (!existsSync(command)) await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', target, 'uv'])
  return { command, env: { ...process.env, PYTHONPATH: target } }
}

/**
 * The interpreter of an environment with pinned packages, made by uv where it is missing or its requirements changed. Packages
 * are hard links into uv's cache, so environments share what they have in common.
 */
export async function pythonEnvironment(options: PythonEnvironmentOptions): Promise<string> {
  const { name, requirements, overrides, withoutDependencies = [] } = options
  const digest = createHash('sha256').update(await readFile(requirements))
  if (overrides !== undefined) digest.update(await readFile(overrides))
  const stampText = digest.update(withoutDependencies.join(' ')).digest('hex')
  const directory = join(environments, name)
  const python = join(directory, 'bin', 'python')
  const stamp = join(directory, 'aworld-train-stamp')
  if (existsSync(python) && (await readFile(stamp, 'utf8').catch(() => '')) === stampText) return python

  await rm(directory, { recursive: true, force: true })
  await mkdir(environments, { recursive: true })
  const { command, env } = await findUv()
  await run(command, ['venv', '--quiet', '--python', '>=3.11,<3.14', directory], env)
  const install = ['pip', 'install', '--quiet', '--python', python]
  await run(command, [...install, '--requirement', requirements, ...(overrides === undefined ? [] : ['--override', overrides])], env)
  if (withoutDependencies.length > 0) await run(command, [...install, '--no-deps', ...withoutDependencies], env)
  await writeFile(stamp, stampText)
  return python
}
