import { access, constants } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { TrainError, type TrainerPython } from '@aworld-train/core'
import { inspectPython, type PythonReport } from './inspect-python.ts'

export interface FindPythonOptions {
  readonly env: NodeJS.ProcessEnv
  /** Folder of the project. Its environments come before those of PATH. */
  readonly projectDirectory: string
  readonly signal?: AbortSignal | undefined
}

export interface PythonCandidate {
  readonly path: string
  /** Place where the interpreter was found: a variable, a folder of the project, or PATH. */
  readonly source: string
}

export interface FoundPython extends PythonCandidate {
  readonly report: PythonReport
  /** Earlier interpreters without the framework, each with the reason. */
  readonly passedOver: readonly (PythonCandidate & { readonly reason: string })[]
}

/** Folder of the environment that `setup` makes for a trainer, below a project's folder. */
export const setupFolder = (trainer: string) => join('.aworld-train', 'python', trainer)

/** The interpreter of an environment's folder. */
export function interpreterOf(directory: string): string {
  return process.platform === 'win32' ? join(directory, 'Scripts', 'python.exe') : join(directory, 'bin', 'python')
}

/**
 * Finds the interpreter that trains: only AWORLD_TRAIN_PYTHON if it is set, else the first with the framework among
 * `.aworld-train/python/<trainer>`, `.venv` and `venv` of the project, `.aworld-train/python/<trainer>` of the folders above it,
 * VIRTUAL_ENV, CONDA_PREFIX, and `python3` and `python` of PATH. Throws TRAINER_ENVIRONMENT if there is none or its versions are
 * refused. Warnings are in its report.
 */
export async function findPython(trainer: TrainerPython, options: FindPythonOptions): Promise<FoundPython> {
  const { env, signal } = options
  const passedOver: { path: string; source: string; reason: string }[] = []
  for (const candidate of await pythonCandidates(trainer.name, options)) {
    signal?.throwIfAborted()
    const named = candidate.source === pythonVariable
    const report = await inspectPython(candidate.path, trainer, { env, signal }).catch((error: unknown) => {
      if (!(error instanceof TrainError)) throw error
      if (named) throw new TrainError('TRAINER_ENVIRONMENT', `${error.message} Correct ${pythonVariable}, or unset it.`, { cause: error })
      passedOver.push({ ...candidate, reason: error.message })
    })
    if (!report) continue
    if (report.packages[trainer.distribution] == null && !named) {
      passedOver.push({ ...candidate, reason: `Python ${report.version} without ${trainer.distribution}` })
      continue
    }
    return { ...accept(trainer.name, { ...candidate, report }), passedOver }
  }
  const looked = passedOver.map(({ path, source, reason }) => `\n  ${path} (${source}): ${reason}`).join('')
  throw new TrainError(
    'TRAINER_ENVIRONMENT',
    `No Python with ${trainer.distribution} was found: ${setUpAdvice(trainer.name)}, or set ${pythonVariable} to the interpreter that has it.${looked && ` Looked at:${looked}`}`,
  )
}

const pythonVariable = 'AWORLD_TRAIN_PYTHON'

/** Advice for messages: the command that makes an environment for a trainer. */
export const setUpAdvice = (trainer: string) => `run "aworld-train setup ${trainer}" to make an environment`

/** The interpreters that exist, in the order in which they are tried. */
async function pythonCandidates(trainer: string, { env, projectDirectory }: FindPythonOptions): Promise<PythonCandidate[]> {
  const named = env[pythonVariable]
  if (named) return [{ path: isAbsolute(named) || !/[\\/]/.test(named) ? named : resolve(projectDirectory, named), source: pythonVariable }]
  const inFolder = (directory: string, source: string) => ({ path: interpreterOf(directory), source })
  const made = setupFolder(trainer)
  const folders = [made, '.venv', 'venv'].map((folder) => inFolder(join(projectDirectory, folder), `${folder} of the project`))
  const above = parentsOf(resolve(projectDirectory)).map((folder) => inFolder(join(folder, made), `${made} of ${folder}`))
  const active = env['VIRTUAL_ENV'] ? [inFolder(env['VIRTUAL_ENV'], 'VIRTUAL_ENV')] : []
  const conda = env['CONDA_PREFIX'] ? [inFolder(env['CONDA_PREFIX'], 'CONDA_PREFIX')] : []
  const suffix = process.platform === 'win32' ? '.exe' : ''
  const onPath = await Promise.all(
    ['python3', 'python'].map(async (name) => {
      for (const folder of (env['PATH'] ?? '').split(delimiter)) {
        const path = join(folder, name + suffix)
        if (folder && (await isExecutable(path))) return { path, source: 'PATH' }
      }
    }),
  )
  const seen = new Set<string>()
  const candidates: PythonCandidate[] = []
  for (const candidate of [...folders, ...above, ...active, ...conda, ...onPath]) {
    if (!candidate || seen.has(candidate.path) || !(await isExecutable(candidate.path))) continue
    seen.add(candidate.path)
    candidates.push(candidate)
  }
  return candidates
}

/** The folders above one, nearest first. */
function parentsOf(folder: string): string[] {
  const parent = dirname(folder)
  return parent === folder ? [] : [parent, ...parentsOf(parent)]
}

function accept<Found extends PythonCandidate & { readonly report: PythonReport }>(trainer: string, found: Found): Found {
  const refusals = found.report.problems.filter(({ level }) => level === 'error').map(({ message }) => message)
  if (refusals.length === 0) return found
  throw new TrainError('TRAINER_ENVIRONMENT', `${found.path} (${found.source}) cannot run ${trainer}: ${refusals.join('\n')}`, {
    details: { path: found.path, problems: refusals },
  })
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
