import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atomicNumbers } from './elements.ts'

const { resolve } = createRequire(import.meta.url)

/** A file of an installed package. */
export const packageFile = (path: string): string => resolve(path)

export interface HarnessRun {
  readonly command: string
  readonly args: readonly string[]
  /** What the program sees beside PATH: nothing else of this process. */
  readonly env: Readonly<Record<string, string>>
  /** Files of its home, by name. */
  readonly home?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** Runs a coding agent without an end to type at, in a home and a folder of its own, and gives what it printed. The folder has the elements in a file. */
export async function runHarness(run: (home: string) => HarnessRun): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'harness-'))
  const [home, work] = [join(folder, 'home'), join(folder, 'work')]
  try {
    const { command, args, env, home: files = {}, signal } = run(home)
    await mkdir(home)
    await mkdir(work)
    await writeFile(join(work, 'elements.json'), JSON.stringify(atomicNumbers))
    for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text)
    const child = spawn(command, args, {
      cwd: work,
      env: { PATH: process.env['PATH'], HOME: home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGKILL',
    })
    let printed = ''
    let problems = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (problems += text))
    const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done))
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${(problems || printed).slice(-2_000)}`)
    return printed
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
