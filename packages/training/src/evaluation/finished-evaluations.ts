import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { EvaluationReport, RunManifest, TrainError } from '@aworld-train/core'
import type { FinishedEvaluation } from './compare.ts'
import { readResults } from './results.ts'

interface ListedEvaluation {
  readonly path: string
  readonly manifest: RunManifest
}

/** The evaluations below a folder of runs that have a report, the newest first. */
function listEvaluations(runPath: string): ListedEvaluation[] {
  const names = existsSync(runPath) ? readdirSync(runPath) : []
  return names
    .flatMap((name) => {
      const path = join(runPath, name)
      const manifest = manifestOf(path)
      return manifest?.kind === 'evaluation' && existsSync(join(path, 'report.json')) ? [{ path, manifest }] : []
    })
    .sort((a, b) => b.manifest.createdAt - a.manifest.createdAt)
}

function manifestOf(run: string): RunManifest | null {
  try {
    return RunManifest.parse(JSON.parse(readFileSync(join(run, 'manifest.json'), 'utf8')))
  } catch {
    return null
  }
}

/**
 * The path of an evaluation that `named` says by its name or path, or of the newest with `last`; with `finishedAs` of the newest finished one
 * of that name.
 * Throws CONFIG_INVALID if there is none.
 */
export function findEvaluation(
  named: string,
  { runPath, finishedAs }: { readonly runPath: string; readonly finishedAs?: string | undefined },
): string {
  const listed = listEvaluations(runPath)
  if (named === 'last') {
    const isWanted = ({ manifest }: ListedEvaluation) =>
      finishedAs === undefined || (manifest.name === finishedAs && manifest.status === 'finished')
    const newest = listed.find(isWanted)
    if (newest) return newest.path
    const what = finishedAs === undefined ? 'evaluation' : `finished evaluation named "${finishedAs}"`
    throw new TrainError('CONFIG_INVALID', `There is no ${what} in ${runPath}; run one first, or name one by its path.`)
  }
  const path = isAbsolute(named) || basename(named) !== named || !existsSync(join(runPath, named)) ? resolve(named) : join(runPath, named)
  const manifest = manifestOf(path)
  if (!manifest) {
    const names = listed.slice(0, 5).map((each) => basename(each.path))
    throw new TrainError(
      'CONFIG_INVALID',
      `There is no run ${path}. ${names.length > 0 ? `The newest evaluations in ${runPath}: ${names.join(', ')}.` : `There are no evaluations in ${runPath}.`}`,
    )
  }
  if (manifest.kind !== 'evaluation')
    throw new TrainError('CONFIG_INVALID', `${path} is a training; name an evaluation, as eval leaves it.`)
  return path
}

/** A finished evaluation. Throws CONFIG_INVALID for one without a report. */
export function readEvaluation(path: string): FinishedEvaluation {
  const rows = readResults(path)
  const { data, error } = EvaluationReport.safeParse(JSON.parse(readFileSync(join(path, 'report.json'), 'utf8')))
  if (!data)
    throw new TrainError('CONFIG_INVALID', `${join(path, 'report.json')} is of another version; run the evaluation anew.`, { cause: error })
  const inputs = manifestOf(path)?.provenance['inputs']
  return { report: data, rows, inputs: (inputs ?? {}) as Readonly<Record<string, string>> }
}
