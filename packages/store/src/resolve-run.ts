import { mkdir, readdir, readFile } from 'node:fs/promises'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { type RunManifest, TrainError } from '@aworld-train/core'
import { anotherConfiguration, readManifest } from './run-manifest.ts'
import { toStoreError } from './store-error.ts'

export interface ResolveRunOptions {
  /** Parent of all runs. */
  readonly runPath: string
  readonly name: string
  readonly configurationHash: string
  /** Hashes of the configuration's inputs, by name. Those that differ are named if a run has another configuration. */
  readonly inputs?: Readonly<Record<string, string>> | undefined
  /** Whether to always start a new run. */
  readonly fresh?: boolean | undefined
  /** Name or path of the run to resume. */
  readonly resume?: string | undefined
}

export interface ResolvedRun {
  readonly path: string
  readonly resumed: boolean
}

/**
 * Resolves the directory that the command works in: the one named by `resume`, else the newest unfinished run of equal configuration, else
 * a new `<runPath>/<name>-<time>/`. Rejects with CONFIG_INVALID if the named run is missing or has another configuration, and with
 * STORE_CORRUPT or STORE_VERSION if an unreadable manifest may be that of the run to resume.
 */
export async function resolveRun(options: ResolveRunOptions): Promise<ResolvedRun> {
  const { runPath, name, configurationHash, fresh = false, resume } = options
  if (fresh && resume !== undefined) {
    throw new TrainError('CONFIG_INVALID', `--new and --resume ${resume} exclude each other; give one of them.`)
  }
  if (resume !== undefined) return { path: await namedRun(runPath, resume, options), resumed: true }
  if (!fresh) {
    const { runs, unreadable } = await runsBelow(runPath)
    for (const { path, error } of unreadable) if (mayBeRunOf(name, path)) throw whichToResume(path, error)
    const unfinished = runs.filter(
      ({ manifest }) => manifest.name === name && manifest.status === 'running' && manifest.configurationHash === configurationHash,
    )
    const newest = unfinished.sort((a, b) => b.manifest.createdAt - a.manifest.createdAt || (a.path < b.path ? 1 : -1))[0]
    if (newest) return { path: newest.path, resumed: true }
  }
  return { path: await makeRunDirectory(runPath, name), resumed: false }
}

async function namedRun(
  runPath: string,
  resume: string,
  { configurationHash, inputs }: Pick<ResolveRunOptions, 'configurationHash' | 'inputs'>,
): Promise<string> {
  const path = isAbsolute(resume) || basename(resume) !== resume ? resolve(resume) : join(runPath, resume)
  const manifest = await readManifest(path)
  if (!manifest) {
    const names = (await runsBelow(runPath)).runs.map((run) => basename(run.path)).sort()
    const hint = names.length > 0 ? `Runs there: ${names.slice(-10).join(', ')}.` : `There is no run in ${runPath}.`
    throw new TrainError('CONFIG_INVALID', `There is no run ${path}. ${hint} Give one of them to --resume, or leave it out.`)
  }
  if (manifest.configurationHash !== configurationHash) throw anotherConfiguration(path, manifest, inputs)
  return path
}

interface RunsBelow {
  readonly runs: { readonly path: string; readonly manifest: RunManifest }[]
  readonly unreadable: { readonly path: string; readonly error: unknown }[]
}

/** Finds runs by their manifests. Other folders are skipped. */
async function runsBelow(runPath: string): Promise<RunsBelow> {
  const found: RunsBelow = { runs: [], unreadable: [] }
  for (const entry of await readdir(runPath, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory()) continue
    const path = join(runPath, entry.name)
    try {
      const manifest = await readManifest(path)
      if (manifest) found.runs.push({ path, manifest })
    } catch (error) {
      if (!(await isFinished(path))) found.unreadable.push({ path, error })
    }
  }
  return found
}

/** Whether a manifest of another format says that its run is finished, so that there is nothing to resume. */
async function isFinished(path: string): Promise<boolean> {
  try {
    const { status } = JSON.parse(await readFile(join(path, 'manifest.json'), 'utf8')) as { status?: unknown }
    return status === 'finished'
  } catch {
    return false
  }
}

/** Whether a folder may be a run of this name, judged by the folder's name. */
function mayBeRunOf(name: string, path: string): boolean {
  const named = /^(.*)-\d{8}-\d{6}(?:-\d+)?$/.exec(basename(path))?.[1]
  return named === undefined || named === name
}

function whichToResume(path: string, error: unknown): TrainError {
  const { code, message } = toStoreError(error, path)
  const [what] = message.split(/\. (?=[A-Z])/)
  return new TrainError(
    code,
    `${join(path, 'manifest.json')} cannot be used (${what}), so it cannot be told whether ${path} is the run to resume. Put the file back, move the folder away, or start a new run with --new.`,
    { cause: error, details: { path } },
  )
}

async function makeRunDirectory(runPath: string, name: string): Promise<string> {
  try {
    await mkdir(runPath, { recursive: true })
    const base = join(runPath, `${name}-${timeStamp(new Date())}`)
    for (let copy = 1; ; copy++) {
      const path = copy === 1 ? base : `${base}-${copy}`
      try {
        await mkdir(path)
        return path
      } catch (error) {
        if ((error as { code?: string }).code !== 'EEXIST') throw error
      }
    }
  } catch (error) {
    // A recursive mkdir on a read-only disk fails with ENOENT in Node.
    const { code, message } = error as NodeJS.ErrnoException
    throw toStoreError(code === 'ENOENT' ? Object.assign(new Error(message, { cause: error }), { code: 'EROFS' }) : error, runPath)
  }
}

/** Local time as `20261121-140305`. */
function timeStamp(date: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`
  return `${day}-${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`
}
