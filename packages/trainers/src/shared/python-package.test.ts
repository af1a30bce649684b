import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { bridgeDirectory } from './python-package.ts'

const run = promisify(execFile)

it('runs the tests of its Python that need nothing but the standard library', async () => {
  const { stderr } = await run('python3', ['-W', 'error::ResourceWarning', '-m', 'unittest', 'discover', '--start-directory', 'tests'], {
    cwd: bridgeDirectory,
    env: { ...process.env, PYTHONPATH: bridgeDirectory, PYTHONDONTWRITEBYTECODE: '1' },
  })
  expect(stderr).toMatch(/Ran \d{2,} tests[\s\S]*\nOK\s*$/)
})
