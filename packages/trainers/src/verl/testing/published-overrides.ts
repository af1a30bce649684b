import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scriptProblem } from '../config/launch-script.ts'

/** AWorld Train's own run.sh, as its guide prints it. */
export const publishedRun = fileURLToPath(new URL('../config/published-run.fixture.sh', import.meta.url))

/** The overrides of a launch script, by the command that its problem names. */
export function overridesOf(text: string, environment: Readonly<Record<string, string>> = {}): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'aworld-train-overrides-'))
  try {
    writeFileSync(join(directory, 'run.sh'), text)
    const command = scriptProblem('run.sh').split('\n')[1]!
    execFileSync('bash', ['-c', command], { cwd: directory, env: { PATH: process.env['PATH'], ...environment }, stdio: 'ignore' })
    return readFileSync(join(directory, 'overrides.txt'), 'utf8').trim().split('\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The overrides of the published script. Two of its lines lack the blank before the `\` that ends them; it is added here. */
export const publishedOverrides = (environment?: Readonly<Record<string, string>>): string[] =>
  overridesOf(readFileSync(publishedRun, 'utf8').replaceAll('"\\\n', '" \\\n'), environment)
