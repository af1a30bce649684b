import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { isRunning, TrainError } from '@aworld-train/core'
import { interpreterOf } from './find-python.ts'
import { runProcess } from './run-process.ts'

export interface MakeEnvironmentOptions {
  /** Folder of the environment. An environment there is replaced if setup made it with another stamp; anything else is refused. */
  readonly directory: string
  /** A version or range that uv understands, such as `3.11` or `>=3.11,<3.13`. */
  readonly python: string
  /** Arguments of `uv pip install`, one list for each installation. */
  readonly installs: readonly (readonly string[])[]
  /** Identifies the packages to install. An environment with the same stamp is kept as it is. */
  readonly stamp: string
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Called with a line for each step. */
  readonly onProgress?: ((line: string) => void) | undefined
  /** Checks the finished environment before it is put in place; throws to refuse it. */
  readonly verify?: ((python: string) => Promise<void>) | undefined
  readonly signal?: AbortSignal | undefined
}

export interface MadeEnvironment {
  /** Absolute path of its interpreter. */
  readonly python: string
  /** False if the environment already existed. */
  readonly isNew: boolean
}

const stampFile = 'aworld-train-stamp'

/**
 * Makes an environment of pinned packages with uv, in a folder beside its place, and moves it there when it is complete. An interrupted
 * setup leaves nothing. Packages are hard links into uv's cache, so environments share common ones.
 */
export async function makeEnvironment(options: MakeEnvironmentOptions): Promise<MadeEnvironment> {
  const { stamp, signal, onProgress, env = process.env } = options
  const directory = resolve(options.directory)
  const python = interpreterOf(directory)
  if (await isMade(directory, stamp)) return { python, isNew: false }
  if (existsSync(directory) && !(await isReplaceable(directory)))
    throw new TrainError(
      'TRAINER_ENVIRONMENT',
      `${directory} stands already and was not made by setup; delete it, or name another folder with --directory.`,
    )
  await mkdir(dirname(directory), { recursive: true })
  await removeRemains(directory)
  const draft = draftOf(directory)
  try {
    const uv = await findUv({ beside: dirname(directory), env, signal, onProgress })
    const run = (args: readonly string[]) => runStep(uv, args, { signal, onProgress })
    await run(['venv', '--relocatable', '--python', options.python, draft])
    for (const install of options.installs) await run(['pip', 'install', '--python', interpreterOf(draft), ...install])
    await options.verify?.(interpreterOf(draft))
    await writeFile(join(draft, stampFile), stamp)
    await putInPlace(draft, directory, stamp)
    return { python, isNew: true }
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

interface Uv {
  readonly command: string
  readonly env: NodeJS.ProcessEnv
}

/** Finds the `uv` of PATH, else one that pip puts beside the environments. */
async function findUv(options: {
  readonly beside: string
  readonly env: NodeJS.ProcessEnv
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((line: string) => void) | undefined
}): Promise<Uv> {
  const { beside, env, signal, onProgress } = options
  const works = async (uv: Uv) =>
    await runProcess(uv.command, ['--version'], { env: uv.env, signal, timeoutMs: 20_000 }).then(
      ({ code }) => code === 0,
      () => false,
    )
  const onPath = { command: 'uv', env }
  if (await works(onPath)) return onPath
  signal?.throwIfAborted()
  const target = join(beside, 'uv')
  const installedUv = { command: join(target, 'bin', 'uv'), env: { ...env, PYTHONPATH: target } }
  if (await works(installedUv)) return installedUv
  onProgress?.('uv is not on PATH; pip installs it beside the environments')
  await removeRemains(target)
  const draft = draftOf(target)
  let reason: string
  try {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', draft, 'uv']
    const { code, stderr } = await runProcess('python3', args, { env, signal })
    // If another setup has put one there in the meantime, that one is used.
    if (code === 0) await rename(draft, target).catch(() => undefined)
    if (code === 0 && (await works(installedUv))) return installedUv
    reason = stderr
  } catch (cause) {
    signal?.throwIfAborted()
    reason = String(cause)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  throw new TrainError(
    'TRAINER_ENVIRONMENT',
    `There is no uv, and "python3 -m pip install uv" did not work: ${lastLines(reason)}. Install uv (https://docs.astral.sh/uv) and run setup again.`,
  )
}

async function runStep(
  uv: Uv,
  args: readonly string[],
  { signal, onProgress }: { readonly signal?: AbortSignal | undefined; readonly onProgress?: ((line: string) => void) | undefined },
): Promise<void> {
  const onLine = (line: string) => {
    const text = line.trim()
    if (text !== '' && !quietLines.test(text)) onProgress?.(text)
  }
  const { code, stderr } = await runProcess(uv.command, args, { env: uv.env, signal, onLine })
  if (code === 0) return
  const space = /No space left|os error 28/i.test(stderr) ? ' The disk is full: free space, then run setup again.' : ''
  throw new TrainError('TRAINER_ENVIRONMENT', `uv ${args.slice(0, 2).join(' ')} ended with ${code}: ${lastLines(stderr)}${space}`)
}

/** Lines about single packages, and lines that name the folder that is about to be renamed. */
const quietLines = /^(?:[+~-] |Creating virtual environment|Activate with|Using Python .* environment)/

const lastLines = (text: string) => text.trim().split('\n').slice(-12).join('\n') || 'it said nothing'

/** The folder beside `directory` in which the environment is made. */
const draftOf = (directory: string) => `${directory}.${process.pid}-${randomUUID().slice(0, 8)}.draft`

async function isMade(directory: string, stamp: string): Promise<boolean> {
  return existsSync(interpreterOf(directory)) && (await readFile(join(directory, stampFile), 'utf8').catch(() => undefined)) === stamp
}

/** Whether a folder is empty or was made by setup. */
async function isReplaceable(directory: string): Promise<boolean> {
  return existsSync(join(directory, stampFile)) || (await readdir(directory).catch(() => ['it is a file'])).length === 0
}

/** Removes the drafts of setups that were killed. */
async function removeRemains(directory: string): Promise<void> {
  const pattern = /^\.(?<pid>\d+)-[0-9a-f]{8}\.(?:draft|old)$/
  for (const name of await readdir(dirname(directory))) {
    if (!name.startsWith(basename(directory))) continue
    const pid = pattern.exec(name.slice(basename(directory).length))?.groups?.['pid']
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(dirname(directory), name), { recursive: true, force: true })
  }
}

/** Puts an environment in its place. If two setups end at the same time, the later one keeps the environment of the earlier one. */
async function putInPlace(draft: string, directory: string, stamp: string): Promise<void> {
  if (await isMade(directory, stamp)) return
  const old = draft.replace(/draft$/, 'old')
  await rename(directory, old).catch(ignoreMissing)
  try {
    await rename(draft, directory)
  } catch (error) {
    if (!(await isMade(directory, stamp))) throw error
  } finally {
    await rm(old, { recursive: true, force: true })
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
