import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunProgress } from '@aworld-train/core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openTensorBoardLog, tensorBoardDirectory } from './tensorboard-log.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-tensorboard-'))
})
afterEach(() => {
  delete process.env['TENSORBOARD_DIR']
  rmSync(folder, { recursive: true, force: true })
})

const store: RunProgress = { path: '', commitStep: async () => {}, steps: () => [], getState: () => null, setState: async () => {} }

it('says once that the disk takes nothing, and lets the run go on', async () => {
  writeFileSync(join(folder, 'taken'), '')
  const warnings: string[] = []
  const directory = join(folder, 'taken', 'curves')
  const log = await openTensorBoardLog({ directory, store, onWarning: (message) => warnings.push(message) })
  for (const step of [1, 2]) log.read({ type: 'step-end', at: 0, step, steps: 2, weightVersion: step, metrics: { loss: 1 } })
  log.close()
  expect(warnings).toEqual([expect.stringMatching(/^TensorBoard's files in .*curves end here: .*The run goes on\.$/)])
})

it('names what belongs to a policy or a role by it', async () => {
  const log = await openTensorBoardLog({ directory: folder, store, onWarning() {} })
  const metrics = { loss: 1, 'policy/reader/loss': 2, 'role/reader/reward': 0.5 }
  log.read({ type: 'step-end', at: 0, step: 1, steps: 2, weightVersion: 1, metrics })
  log.close()
  const [file] = readdirSync(folder)
  const tags = readFileSync(join(folder, file!), 'latin1').match(/[a-z]+(?:\/[a-z]+)+/g)
  expect(tags).toEqual(['train/loss', 'policy/reader/loss', 'role/reader/reward'])
})

it('has its folder where verl has it, inside the run whatever the names are', () => {
  const names = (project: string, experiment: string) => tensorBoardDirectory(folder, { project, experiment })
  expect(names('gaia', 'qwen3')).toBe(join(folder, 'tensorboard_log', 'gaia', 'qwen3'))
  expect(names('..', '../../qwen3')).toBe(join(folder, 'tensorboard_log', '-', '..-..-qwen3'))
  process.env['TENSORBOARD_DIR'] = join(folder, 'elsewhere')
  expect(names('gaia', 'qwen3')).toBe(join(folder, 'elsewhere'))
})
