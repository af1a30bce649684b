import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readOwnConfig } from './own-config.ts'
import { parseLocalConfig } from './parse-local-config.ts'
import { TrainerSettings } from './trainer-settings.ts'
import { readTrainerSource, splitConfig } from './trainer-source.ts'

const sections = ['one', 'two', 'three']
const keys = { name: 'one', title: 'One', sections, ownKeys: ['training', 'limits', 'engine', 'gateway', 'executor', 'data'] }
const options = { ...keys, baseDirectory: '/project' }

test('a section with nothing below it is empty', () => {
  expect(splitConfig({ one: null, training: { steps: 5 } }, keys)).toMatchObject({
    own: { training: { steps: 5 } },
    fields: {},
    problems: [],
  })
})

test('ours stand at the top, a framework’s in its section, where a key of ours wins; others and the box are left aside', () => {
  const { own, fields, notes, problems } = splitConfig(
    {
      training: { steps: 5, stratify: { key: 'kind' } },
      one: { training: { stratify: null }, 'rate.first': 1 },
      two: { nothing: 'is read' },
      engine: { threads: 2 },
    },
    keys,
  )
  expect(own).toMatchObject({ training: { steps: 5, stratify: null } })
  expect(fields).toEqual({ rate: { first: 1 } })
  expect(notes).toEqual(['one leaves aside what is for other trainers: two, engine.'])
  expect(problems).toEqual([])
})

test('a framework’s keys at the top are a problem, unless its users have files of them', () => {
  const configuration = { rate: 1, data: { file: 'a', trainFiles: [], trainFile: 'b' } }
  const shared = { data: ['trainFiles'] }
  expect(splitConfig(configuration, { ...keys, shared }).problems).toEqual([
    '"rate" is no key of the configuration. A key of One stands in the section "one": one.rate.',
  ])
  const { own, fields, problems } = splitConfig(configuration, { ...keys, shared, atTop: true })
  expect([own, fields, problems]).toEqual([{ data: { trainFiles: [], trainFile: 'b' } }, { rate: 1, data: { file: 'a' } }, []])
  expect(splitConfig({ limitz: {} }, { ...keys, atTop: true }).own).toEqual({ limitz: {} })
})

test.each([
  ['code', { aworldTrain: { limits: { maxTurns: 3 }, rows: 'last' } }, 'Write limits, rows there.'],
  ['code, by a dotted key', { 'aworldTrain.limits.maxTurns': 3 }, 'Write limits there.'],
  ['code, in the section', { one: { aworldTrain: { rows: 'last' } } }, 'Write rows there.'],
  ['code, with nothing in it', { aworldTrain: {} }, 'Leave it out.'],
  ['YAML', 'a.yaml', 'Write limits there.'],
  ['JSON', 'a.json', 'Write rows there.'],
])('a former block of ours is a problem that says where its keys stand: %s', async (_, source, remedy) => {
  const folder = await mkdtemp(join(tmpdir(), 'trainer source-'))
  await writeFile(join(folder, 'a.yaml'), 'limits: {maxTurns: 2}\naworldTrain: {limits: {maxTurns: 3}}\n')
  await writeFile(join(folder, 'a.json'), '{"aworldTrain": {"rows": "last"}}')
  const { problems, failed } = readTrainerSource(source, { ...options, baseDirectory: folder })
  const problem = `"aworldTrain" is no section of a configuration: its keys stand at the top. ${remedy}`
  expect([problems, failed]).toEqual([[problem], keys.ownKeys])
  if (typeof source === 'string' || 'aworldTrain' in source)
    expect(() => parseLocalConfig(typeof source === 'string' ? join(folder, source) : source)).toThrow(problem)
  await rm(folder, { recursive: true })
})

test.each([
  [{ one: 5 }, '"one" is no mapping of keys to values; write one.'],
  [['steps=1'], 'The configuration is neither a path nor an object of keys and values; pass one of these.'],
  ['absent.yaml', 'there is no such file; correct the path of the configuration.'],
])('%j is a problem', (source, problem) => {
  expect(readTrainerSource(source, options).problems).toEqual([problem])
})

test('a file is cut into our keys and the framework’s', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trainer source-'))
  await writeFile(join(folder, 'a.yaml'), 'limits: {maxTurns: 3}\none: {rate: 1}\n')
  const read = readTrainerSource('a.yaml', { ...options, baseDirectory: folder })
  expect(read).toMatchObject({ own: { limits: { maxTurns: 3 } }, fields: { rate: 1 }, directory: folder, where: 'a.yaml', notes: [] })
  await rm(folder, { recursive: true })
})

test('where agents run, where the gateway listens and what becomes of calls is read by every trainer, a function too', () => {
  const trainedCalls = () => true
  const gateway = { trainedCalls, ignore: ['^Today .*$'], port: 8080 }
  const { own, notes } = splitConfig({ gateway, executor: { workerNum: 2 } }, keys)
  expect(notes).toEqual([])
  const { settings, problems } = readOwnConfig(TrainerSettings, own)
  expect(problems).toEqual([])
  expect(settings).toMatchObject({ gateway: { trainedCalls, hostedTools: 'leave-out', port: 8080 }, executor: { workerNum: 2 } })
  expect(readOwnConfig(TrainerSettings, {}).settings.gateway.trainedCalls).toBe('with-tools')
  expect(readOwnConfig(TrainerSettings, { gateway: { ignore: ['('], trainedCalls: 'some' } }).problems).toHaveLength(2)
  expect(parseLocalConfig({ gateway }).config.gateway).toMatchObject({ trainedCalls, port: 8080 })
})

test('the share of own rewards is read in training, and refused where the framework scores', () => {
  const training = { ownReward: 0.5 }
  expect(readOwnConfig(TrainerSettings, { training })).toMatchObject({ problems: [], settings: { ownReward: 0.5 } })
  expect(readOwnConfig(TrainerSettings, { training, reward: { native: true } }).problems).toEqual([
    'training.ownReward is 0.5, and with reward.native the framework scores rollouts as a whole. Leave it out, or set reward.native to false.',
  ])
  expect(readOwnConfig(TrainerSettings, { training: { ownReward: 1.5 } }).problems).toEqual([expect.stringContaining('training.ownReward')])
})
