import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { bridgeDirectory } from '@aworld-train/python-bridge'
import { expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'

const run = promisify(execFile)

it('samples in batches what one request alone would get, counts it, and trains on whole groups only', { timeout: 1_200_000 }, async () => {
  const python = await verlEnvironment()
  const { stderr } = await run(python, ['-m', 'unittest', 'discover', '--start-directory', 'tests/smoke'], {
    cwd: bridgeDirectory,
    env: {
      ...process.env,
      PYTHONPATH: bridgeDirectory,
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONWARNINGS: 'ignore',
      OMP_NUM_THREADS: '1',
      HF_HUB_OFFLINE: '1',
    },
    timeout: 300_000,
  })
  expect(stderr).toMatch(/Ran \d{2,} tests[\s\S]*\nOK\s*$/)
})
