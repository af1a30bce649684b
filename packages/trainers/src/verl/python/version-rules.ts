import type { PythonFacts, PythonProblem, TrainerPython } from '@aworld-train/core'
import { setUpAdvice } from '../../shared/environment/find-python.ts'
import { compareVersions, isBelow } from '../../shared/environment/versions.ts'
import { planSetup } from './plan-setup.ts'

const setUp = setUpAdvice('verl')

/** The verl that everything here is tested with (verl 0.9.1 on the package index: Python >=3.10,<3.13). */
const testedVerl = '0.9.1'

/** Packages that verl 0.9.1 imports at module top, as distribution names in normal form; its wheel does not require those with a `requirement`. */
const needed: readonly { readonly name: string; readonly requirement?: string; readonly test?: (version: string) => string | undefined }[] =
  [
    { name: 'torch' },
    { name: 'ray' },
    { name: 'transformers', test: between('transformers', [5, 5, 3], [5, 11]) },
    { name: 'tensordict', test: between('tensordict', [0, 10, 0], [0, 10, 1]) },
    { name: 'numpy', test: between('numpy', [2, 0], [Number.POSITIVE_INFINITY]) },
    { name: 'pyarrow' },
    { name: 'hydra-core' },
    { name: 'transferqueue', requirement: 'TransferQueue==0.1.11' },
    { name: 'cachetools', requirement: 'cachetools' },
    { name: 'fastapi', requirement: 'fastapi' },
    { name: 'uvicorn', requirement: 'uvicorn' },
    { name: 'aiohttp' },
  ]

/** Distribution names whose versions an inspection reads. */
const inspected: readonly string[] = ['verl', ...needed.map(({ name }) => name), 'vllm', 'sglang', 'flash-attn']

/** Judges an interpreter by its version and packages. The test has a table of cases. */
function judge({ version, packages }: PythonFacts): PythonProblem[] {
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  const warn = (about: string, message: string) => problems.push({ level: 'warning', about, message })
  if (compareVersions(version, [3, 10]) < 0 || !isBelow(version, [3, 13]))
    refuse('python', `Python ${version} cannot run verl ${testedVerl}, which needs 3.10, 3.11 or 3.12; ${setUp}.`)
  const verl = packages['verl'] ?? null
  if (verl === null) {
    refuse('verl', `verl is not installed; ${setUp}.`)
    return problems
  }
  if (compareVersions(verl, [0, 9]) < 0)
    refuse('verl', `verl ${verl} is older than 0.9, whose agent loops and trainer differ; install verl==${testedVerl}, or ${setUp}.`)
  else if (verl !== testedVerl)
    warn('verl', `verl ${verl} was not tested, ${testedVerl} was; if training fails, install verl==${testedVerl}, or ${setUp}.`)
  for (const { name, requirement, test } of needed) {
    const found = packages[name] ?? null
    if (found === null && requirement !== undefined)
      refuse(
        name,
        `${requirement.split('==')[0]} is missing; verl imports it but does not require it: pip install "${requirement}", or ${setUp}.`,
      )
    else if (found === null) refuse(name, `${name} is missing, which verl needs: pip install "${name}", or ${setUp}.`)
    else {
      const complaint = test?.(found)
      if (complaint !== undefined && isBelow(verl, [0, 10])) refuse(name, complaint)
    }
  }
  return problems
}

function between(name: string, from: readonly number[], below: readonly number[]) {
  return (version: string): string | undefined => {
    if (compareVersions(version, from) >= 0 && isBelow(version, below)) return undefined
    const upper = Number.isFinite(below[0]) ? `,<${below.join('.')}` : ''
    return `${name} ${version} does not fit verl ${testedVerl}: pip install "${name}>=${from.join('.')}${upper}", or ${setUp}.`
  }
}

export const verlPython: TrainerPython = {
  name: 'verl',
  distribution: 'verl',
  inspected,
  shown: ['verl', 'torch', 'transformers', 'ray', 'transferqueue', 'vllm', 'sglang'],
  versions: '>=3.11,<3.13',
  judge,
  planSetup,
}
