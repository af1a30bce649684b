import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { PythonTrainer } from '@aworld-train/core'
import { arealTrainer } from '@aworld-train/trainers/areal'
import { makeEnvironment, makeTrainerEnvironment } from '@aworld-train/trainers/shared'
import { swiftTrainer } from '@aworld-train/trainers/swift'
import { trlTrainer } from '@aworld-train/trainers/trl'
import { verlTrainer } from '@aworld-train/trainers/verl'

const root = fileURLToPath(new URL('../..', import.meta.url))
const environments = join(root, '.aworld-train', 'python')

export interface PythonEnvironmentOptions {
  /** Folder name of the environment. */
  readonly name: string
  /** A version or range for uv, or the path of an interpreter. */
  readonly python?: string | undefined
  /** File of pinned requirements. */
  readonly requirements: string
  /** File that replaces the packages' own requirements. */
  readonly overrides?: string | undefined
  /** Packages to install last, without their requirements. */
  readonly withoutDependencies?: readonly string[] | undefined
}

/** The interpreter of an environment with pinned packages. uv makes it if it is missing or its requirements changed. */
export async function pythonEnvironment(options: PythonEnvironmentOptions): Promise<string> {
  const { name, python: interpreter = '>=3.11,<3.14', requirements, overrides, withoutDependencies = [] } = options
  const digest = createHash('sha256').update(await readFile(requirements))
  if (overrides !== undefined) digest.update(await readFile(overrides))
  const { python } = await makeEnvironment({
    directory: join(environments, name),
    python: interpreter,
    installs: [
      ['--requirement', requirements, ...(overrides === undefined ? [] : ['--override', overrides])],
      ...(withoutDependencies.length === 0 ? [] : [['--no-deps', ...withoutDependencies]]),
    ],
    stamp: digest.update([...withoutDependencies, ...(options.python === undefined ? [] : [interpreter])].join(' ')).digest('hex'),
  })
  return python
}

/** The interpreter that `aworld-train setup verl --torch cpu` makes for this repository. */
export const verlEnvironment = () => environmentOf(verlTrainer)

/** The interpreter that `aworld-train setup trl --torch cpu` makes for this repository. */
export const trlEnvironment = () => environmentOf(trlTrainer)

/** The interpreter that `aworld-train setup areal --torch cpu` makes for this repository. */
export const arealEnvironment = () => environmentOf(arealTrainer)

/** The interpreter that `aworld-train setup swift --torch cpu` makes for this repository. */
export const swiftEnvironment = () => environmentOf(swiftTrainer)

async function environmentOf({ name, python: requirements }: Pick<PythonTrainer, 'name' | 'python'>): Promise<string> {
  const { python } = await makeTrainerEnvironment(requirements, { directory: join(environments, name), torch: 'cpu' })
  return python
}
