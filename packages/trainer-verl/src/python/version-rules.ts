/** What stands against training with an interpreter: an error refuses it, a warning is said and training goes on. */
export interface PythonProblem {
  readonly level: 'error' | 'warning'
  /** The part at fault: `python` or the name of a package. */
  readonly about: string
  /** What is wrong and what to do. */
  readonly message: string
}

/** What an interpreter is and holds; a package is null where it is not installed. */
export interface PythonFacts {
  readonly version: string
  readonly packages: Readonly<Record<string, string | null>>
}

/** The verl that everything here is tested with (verl 0.9.1 on the package index: Python >=3.10,<3.13). */
export const testedVerl = '0.9.1'

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
export const inspectedPackages: readonly string[] = ['verl', ...needed.map(({ name }) => name), 'vllm', 'sglang', 'flash-attn']

/** Judges an interpreter by its version and packages; table of cases in the test. */
export function judgePython({ version, packages }: PythonFacts): PythonProblem[] {
  const problems: PythonProblem[] = []
  const refuse = (about: string, message: string) => problems.push({ level: 'error', about, message })
  const warn = (about: string, message: string) => problems.push({ level: 'warning', about, message })
  if (compare(version, [3, 10]) < 0 || !isBelow(version, [3, 13]))
    refuse('python', `Python ${version} cannot run verl ${testedVerl}, which needs 3.10, 3.11 or 3.12; ${setUp}.`)
  const verl = packages['verl'] ?? null
  if (verl === null) {
    refuse('verl', `verl is not installed; ${setUp}.`)
    return problems
  }
  if (compare(verl, [0, 9]) < 0)
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

export const setUp = 'run "aworld-train setup verl" to make an environment'

const parts = /^v?(?:\d+!)?(?<numbers>\d+(?:\.\d+)*)(?<pre>[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[-._]?\d*)?/i

/** Sign of a version against a release such as [0, 10]; a pre-release of a version stands before it (PEP 440). */
export function compare(version: string, release: readonly number[]): number {
  return compareNumbers(version, release) || (parts.exec(version)?.groups?.['pre'] === undefined ? 0 : -1)
}

/** Whether a version is below a release; a pre-release of that release is not (PEP 440, exclusive comparison). */
export function isBelow(version: string, release: readonly number[]): boolean {
  return compareNumbers(version, release) < 0
}

function compareNumbers(version: string, release: readonly number[]): number {
  const numbers = (parts.exec(version)?.groups?.['numbers'] ?? '0').split('.').map(Number)
  for (let index = 0; index < Math.max(numbers.length, release.length); index++) {
    const difference = (numbers[index] ?? 0) - (release[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function between(name: string, from: readonly number[], below: readonly number[]) {
  return (version: string): string | undefined => {
    if (compare(version, from) >= 0 && isBelow(version, below)) return undefined
    const upper = Number.isFinite(below[0]) ? `,<${below.join('.')}` : ''
    return `${name} ${version} does not fit verl ${testedVerl}: pip install "${name}>=${from.join('.')}${upper}", or ${setUp}.`
  }
}
