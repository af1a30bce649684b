import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { writeTinyModel } from '@aworld-train/testing'
import { verlTrainer } from '@aworld-train/trainers/verl'
import type { DoctorCheck } from 'aworld-train'
import { expect, it, onTestFinished, vi } from 'vitest'
import { writeScriptedPython } from '../../../aworld-train/src/testing/scripted-python.ts'
import { trainerChecks } from './trainer-checks.ts'

it('says of a project what its data may mean otherwise, beside its problems, and reads its configuration once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'aworld-train-verl-checks-'))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(directory, { recursive: true, force: true })
  })
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const { python, starts } = await writeScriptedPython(directory)
  vi.stubEnv('AWORLD_TRAIN_PYTHON', python)
  const task = { prompt: 'Is 4 even?', answer: 'yes', anwser: 'yes' }
  writeFileSync(join(directory, 'train.jsonl'), `${JSON.stringify(task)}\n`.repeat(2))
  writeFileSync(
    join(directory, 'aworld-train.config.mjs'),
    `export default {
      agent: async () => 'yes',
      trainDataset: './train.jsonl',
      rewardFunc: () => 1,
      config: {
        training: { steps: 1, promptsPerStep: 2, samplesPerPrompt: 2 },
        data: { max_prompt_length: 128, max_response_length: 64 },
        actor_rollout_ref: { model: { path: './model' } },
        smoke: true,
      },
    }\n`,
  )
  const checks: DoctorCheck[] = []
  const report = { add: (...more: DoctorCheck[]) => void checks.push(...more), end: () => 0 }
  const project = join(directory, 'aworld-train.config.mjs')
  await trainerChecks({ trainer: verlTrainer, project, config: undefined, smoke: false, report, signal: new AbortController().signal })
  expect(checks.filter(({ name }) => name === 'project')).toEqual([
    { name: 'project', ok: true, message: 'agent, data, reward and configuration are there' },
    {
      name: 'project',
      ok: true,
      warning: true,
      message: expect.stringMatching(/"anwser" goes to the reward.*Did you mean "answer" by "anwser"/),
    },
  ])
  expect(readFileSync(starts, 'utf8').match(/^.*resolve_config$/gm)).toHaveLength(1)
})
