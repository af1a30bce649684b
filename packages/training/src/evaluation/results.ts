import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EvaluationRow, TrainError } from '@aworld-train/core'

const fileName = 'results.jsonl'

/** Writes the rollouts of an evaluation, one a line. */
export async function writeResults(run: string, rows: readonly EvaluationRow[]): Promise<void> {
  const path = join(run, fileName)
  await writeFile(`${path}.new`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  await rename(`${path}.new`, path)
}

/** Reads the rollouts of an evaluation. Throws STORE_CORRUPT for a line that is none, and CONFIG_INVALID if the run has no results. */
export function readResults(run: string): EvaluationRow[] {
  const path = join(run, fileName)
  const rows: EvaluationRow[] = []
  try {
    for (const line of readFileSync(path, 'utf8').split('\n')) if (line !== '') rows.push(EvaluationRow.parse(JSON.parse(line)))
    return rows
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new TrainError(
        'CONFIG_INVALID',
        `${run} has no ${fileName}: it is no evaluation, or not a finished one. Run the same command again, and it goes on.`,
      )
    throw new TrainError('STORE_CORRUPT', `Line ${rows.length + 1} of ${path} is no result of a rollout; run the evaluation anew.`, {
      cause,
    })
  }
}
