import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { expect, it } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'

const run = promisify(execFile)

it.each([
  ['samples in batches what one request alone would get', 'tests/with_torch', 'test_*.py'],
  ['serves verl what it sampled and counts it, and trains on whole groups only', 'tests/with_verl', 'test_[brs]*.py'],
])('%s', { timeout: 1_200_000 }, async (_, directory, pattern) => {
  const python = await verlEnvironment()
  const { stderr } = await run(python, ['-m', 'unittest', 'discover', '-s', directory, '-p', pattern], {
    cwd: bridgeDirectory,
    env: {
      ...process.env,
      PYTHONPATH: [bridgeDirectory, join(bridgeDirectory, 'tests')].join(':'),
      AWORLD_TRAIN_TEST_MODEL: fileURLToPath(new URL('../../../examples/periodic-table/model', import.meta.url)),
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONWARNINGS: 'ignore',
      OMP_NUM_THREADS: '1',
      HF_HUB_OFFLINE: '1',
    },
    timeout: 300_000,
  })
  expect(stderr).toMatch(/Ran \d{2,} tests[\s\S]*\nOK\s*$/)
})
