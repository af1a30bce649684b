import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { writeTinyModel } from '@aworld-train/testing'
import { diagnoseTrainer } from '@aworld-train/trainers/shared'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Agent, AgentTrainer } from './index.ts'
import { pythonTrainers } from './python-trainers.ts'
import { writeScriptedPython } from './testing/scripted-python.ts'

async function makeProject(name: string) {
  const directory = await mkdtemp(join(tmpdir(), 'python starts '))
  onTestFinished(() => rm(directory, { recursive: true }))
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  // ms-swift takes a TRL below 1.0 only.
  const { python, starts } = await writeScriptedPython(directory, name === 'swift' ? { trl: '0.29.0' } : {})
  vi.stubEnv('AWORLD_TRAIN_PYTHON', python)
  onTestFinished(() => void vi.unstubAllEnvs())
  const config = pythonTrainers.find((trainer) => trainer.name === name)!.smokeConfig('./model')
  return { directory, config, starts: async () => (await readFile(starts, 'utf8')).trim().split('\n') }
}

const probe = 'probe'
const reads = (name: string) => `-W ignore -m aworld_train_bridge.${name} --check`

test.each(['trl', 'areal', 'swift'])('%s reads a configuration and plans a start of it in one Python', async (trainEngineName) => {
  const { directory, config, starts } = await makeProject(trainEngineName)
  const trainer = await AgentTrainer.create({
    trainEngineName,
    config,
    agent: new Agent({ name: 'answerer', systemPrompt: 'Say yes or no.' }),
    trainDataset: Array.from({ length: 16 }, (_, id) => ({ id: `${id}`, prompt: `Is ${id} a number?`, answer: 'yes' })),
    testDataset: [{ id: 'test', prompt: 'Is 0 a number?', answer: 'yes' }],
    rewardFunc: () => 1,
    baseDirectory: directory,
    runPath: join(directory, 'runs'),
    onEvent() {},
  })
  expect(await starts()).toEqual([probe, reads(trainEngineName)])
  expect((await trainer.dryRun()).version).toBe('scripted')
  expect(await starts()).toEqual([probe, reads(trainEngineName)])
})

test.each(['trl', 'areal', 'swift'])('doctor has %s imported once for a configuration, and once without one', async (name) => {
  const { directory, config, starts } = await makeProject(name)
  const trainer = pythonTrainers.find((each) => each.name === name)!
  const options = { env: process.env, projectDirectory: directory }
  const imports = []
  for await (const check of diagnoseTrainer(trainer, { ...options, config })) if (check.name === 'imports') imports.push(check.message)
  for await (const check of diagnoseTrainer(trainer, options)) if (check.name === 'imports') imports.push(check.message)
  expect(imports).toEqual([expect.stringMatching(/ scripted and the bridge/), expect.stringMatching(/ scripted and the bridge/)])
  expect(await starts()).toEqual([probe, reads(name), probe, probe, probe, reads(name)])
})
