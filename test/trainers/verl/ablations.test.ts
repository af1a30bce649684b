// The real verl, broken in one way each: the check of the exam that is there for it fails, and the report warns of it.
import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunReport } from '@aworld-train/core'
import { createTrainerExam, examineRun, type TrainedRun, type TrainerSubject } from '@aworld-train/testing'
import { bridgeDirectory } from '@aworld-train/trainers/shared'
import { afterAll, expect, test, vi } from 'vitest'
import { verlEnvironment } from '../../support/python-environment.ts'
import { verlSubject } from '../../support/trainer-exam/verl-subject.ts'

const parent = await mkdtemp(join(tmpdir(), 'aworld train verl exam-'))
const python = await verlEnvironment()
afterAll(() => rm(parent, { recursive: true, force: true }))

/** Trains with a module of Python that every process of verl imports. */
async function trainWith(fault: string, subject: TrainerSubject): Promise<TrainedRun> {
  vi.stubEnv('VERL_USE_EXTERNAL_MODULES', fault)
  vi.stubEnv('PYTHONPATH', join(bridgeDirectory, 'tests', 'faults'))
  return await subject.train(createTrainerExam(), { steps: 2 }).finally(() => vi.unstubAllEnvs())
}

test.each([
  ['one token is trained in the place of another', 'shift_one_token', 'rows', /ids that no episode has/],
  ['the mask of the environment is ignored', 'mask_ignored', 'rows', /Row \d+ of step 1 trains \d+ tokens/],
  ['the engine samples at another temperature', 'temperature_wrong', 'gap', /logprobs of step 1/],
  ['the engine never samples new weights', 'stale_engine', 'gap', /logprobs of step 2/],
] as const)('%s', { timeout: 600_000 }, async (_, fault, check, message) => {
  const folder = await mkdtemp(join(parent, 'exam-'))
  const subject = verlSubject({ python, folder })
  const run = await trainWith(fault, subject)
  await expect(examineRun(run, subject)[check]()).rejects.toThrow(message)
  const [report] = globSync(join(folder, 'run-*', '*', 'report.json'))
  const { warnings } = RunReport.parse(JSON.parse(await readFile(report!, 'utf8')))
  expect(warnings.map(({ code }) => code)).toContain('POLICY_LOGPROB_MISMATCH')
})

test('logprobs that are no numbers end the run', { timeout: 600_000 }, async () => {
  const folder = await mkdtemp(join(parent, 'exam-'))
  await expect(trainWith('logprobs_nan', verlSubject({ python, folder }))).rejects.toMatchObject({ code: 'TRAINER_NOT_FINITE' })
})
