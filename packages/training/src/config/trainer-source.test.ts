import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readOwnConfig } from './own-config.ts'
import { parseLocalConfig } from './parse-local-config.ts'
import { TrainerSettings } from './trainer-settings.ts'
import { readTrainerSource, takeSection } from './trainer-source.ts'

const sections = ['one', 'two', 'three']
const options = { name: 'one', sections, ownKeys: ['training', 'limits', 'logging'], baseDirectory: '/project' }

test('the section of a trainer stands over the rest, and those of others and of the box are left aside', () => {
  const { tree, notes, problems } = takeSection(
    {
      training: { steps: 5, stratify: { key: 'kind' } },
      one: { training: { stratify: null }, 'rate.first': 1 },
      two: { nothing: 'is read' },
      logging: ['tensorboard'],
    },
    options,
  )
  expect(tree).toMatchObject({ training: { steps: 5, stratify: null }, rate: { first: 1 } })
  expect(tree).not.toHaveProperty('two')
  expect(notes).toEqual(['one leaves aside what is for other trainers: two, logging.'])
  expect(problems).toEqual([])
})

test('without a list of trainers no key is a section', () => {
  expect(takeSection({ one: { a: 1 }, two: 2 }, { name: 'one' })).toEqual({ tree: { one: { a: 1 }, two: 2 }, notes: [], problems: [] })
})

test.each([
  [{ one: 5 }, '"one" is no mapping of keys to values; write one.'],
  [['steps=1'], 'The configuration is neither a path nor an object of keys and values; pass one of these.'],
  ['absent.yaml', '/project/absent.yaml: there is no such file; correct the path of the configuration.'],
])('%j is a problem', (source, problem) => {
  expect(readTrainerSource(source, options).problems).toEqual([problem])
})

test('a file is cut into our keys and the framework’s, and our block wins', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trainer source-'))
  await writeFile(join(folder, 'a.yaml'), 'rate: 1\nlimits: {maxTurns: 2}\naworldTrain: {limits: {maxTurns: 3}}\n')
  const read = readTrainerSource('a.yaml', { ...options, baseDirectory: folder })
  expect(read).toMatchObject({ own: { limits: { maxTurns: 3 } }, fields: { rate: 1 }, directory: folder, where: 'a.yaml', notes: [] })
  await rm(folder, { recursive: true })
})

test('what becomes of the calls of agents is read by every trainer, a function too; where the gateway listens is for the box alone', () => {
  const trainedCalls = () => true
  const gateway = { trainedCalls, ignore: ['^Today .*$'], port: 8080 }
  const { tree, notes } = takeSection({ gateway }, { name: 'one', sections })
  expect(notes).toEqual(['one leaves aside what is for other trainers: gateway.port.'])
  const { settings, problems } = readOwnConfig(TrainerSettings, tree)
  expect(problems).toEqual([])
  expect(settings.gateway).toEqual({ trainedCalls, hostedTools: 'leave-out', ignore: ['^Today .*$'] })
  expect(readOwnConfig(TrainerSettings, {}).settings.gateway.trainedCalls).toBe('with-tools')
  expect(readOwnConfig(TrainerSettings, { gateway: { ignore: ['('], trainedCalls: 'some' } }).problems).toHaveLength(2)
  expect(parseLocalConfig({ gateway }).config.gateway).toMatchObject({ trainedCalls, port: 8080 })
})
