import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { repository } from './support/run-cli.ts'
import { runNode } from './support/run-npm.ts'

it('npm test -- FILE -t NAME runs the tests of a file whose name matches, in a temporary folder that it removes', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'runner-'))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(temporary, { recursive: true })
  })
  vi.stubEnv('TMPDIR', temporary)
  const { code, output } = await runNode(['scripts/test.ts', 'scripts/full-forms.test.ts', '-t', 'twenty days'], repository)
  expect({ code, end: output.trim().split('\n').slice(-3) }).toEqual({
    code: 0,
    end: ['1 tests have another name.', '', '1 passed, 0 failed'],
  })
  expect(readdirSync(temporary)).toEqual([])
})
