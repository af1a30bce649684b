// Installs the frameworks of examples/any-agent, and Python's client, where they are missing or their lock changed.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { pythonEnvironment } from '../support/python-environment.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** An interpreter that has the packages of the example's requirements.txt. */
    readonly python: string
  }
}

const example = fileURLToPath(new URL('../../examples/any-agent', import.meta.url))
const installDeadlineMs = 10 * 60_000

export default async function setup({ provide }: TestProject): Promise<void> {
  await installFrameworks()
  provide('python', await pythonEnvironment({ name: 'any-agent', requirements: join(example, 'requirements.txt') }))
}

async function installFrameworks(): Promise<void> {
  const lock = await readFile(join(example, 'package-lock.json'))
  const expected = createHash('sha256').update(lock).digest('hex')
  const stamp = join(example, 'node_modules', '.aworld-train-stamp')
  if ((await readFile(stamp, 'utf8').catch(() => '')) === expected) return
  console.log('Installing the agent frameworks of examples/any-agent …')
  await npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  await writeFile(stamp, expected)
}

async function npm(args: readonly string[]): Promise<void> {
  const script = process.env['npm_execpath']
  const [command, prefix] = script?.endsWith('.js') ? [process.execPath, [script]] : ['npm', []]
  const child = spawn(command, [...prefix, ...args], {
    cwd: example,
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
  throw new Error(`The agent frameworks could not be installed: npm ${args.join(' ')} in ${example} ended with ${code}:\n${output}`)
}
