import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type KeyTranslator, parseLocalConfig } from './parse-local-config.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-config-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

describe('our own keys', () => {
  it('come from YAML, JSON, an object or nothing', () => {
    const expected = parseLocalConfig({ training: { steps: 3 }, seed: 7 }).config
    expect(parseLocalConfig(file('a.yaml', 'training:\n  steps: 3 # few\nseed: 7\n')).config).toEqual(expected)
    expect(parseLocalConfig(file('a.json', '{"training": {"steps": 3}, "seed": 7}')).config).toEqual(expected)
    expect(parseLocalConfig({ 'training.steps': 3, seed: 7 }).config).toEqual(expected)
    expect(parseLocalConfig(undefined).config).toEqual(parseLocalConfig(file('empty.yaml', '')).config)
  })

  it('say that the clip of the loss in the box is not that of a loss of one’s own', () => {
    const training = { clipLow: 0.1, loss: () => [] }
    expect(parseLocalConfig({ training }).notes).toEqual([
      'training.clipLow has no effect with training.loss: a loss of your own has its own clip.',
    ])
    expect(parseLocalConfig({ training: { clipLow: 0.1 } }).notes).toEqual([])
    expect(parseLocalConfig({ training }).config.training.loss).toBe(training.loss)
  })

  it('leave names of models, variables and what a cluster has as they are', () => {
    const resources = { limits: { 'nvidia.com/gpu': 1 }, 'spark.executor.memory': '2g' }
    const env = { 'my.variable': 'a' }
    expect(parseLocalConfig({ executor: { resources, env } }).config.executor).toMatchObject({ resources, env })
    const models = { 'gpt-4.1': { baseUrl: 'http://127.0.0.1:9', model: 'gpt-4.1' } }
    expect(parseLocalConfig({ models }).config.models).toMatchObject(models)
    expect(parseLocalConfig({ 'executor.resources.num_cpus': 2 }).config.executor.resources).toEqual({ num_cpus: 2 })
  })

  it.each([
    [{ training: { learning_rate: 1 } }, '"training.learning_rate" is no key of the configuration. Did you mean "learningRate"?'],
    [
      { logging: ['wandb'] },
      '"logging.0" is "wandb": must be tensorboard, whose event files other services read; steps and evaluations are in events.jsonl too.',
    ],
    [{ sead: 1 }, '"sead" is no key of the configuration. Did you mean "seed"?'],
    [
      { training: { stratify: { key: 'kind', count: {} } } },
      '"training.stratify.count" is no key of the configuration. Did you mean "counts"?',
    ],
    [
      { policies: { lead: { learningrate: 1 } } },
      '"policies.lead.learningrate" is no key of the configuration. Did you mean "learningRate"?',
    ],
    [
      { models: { judge: { baseUrl: 'http://127.0.0.1:9', model: 'a', casette: 'a.jsonl' } } },
      '"models.judge.casette" is no key of the configuration. Did you mean "cassette"?',
    ],
    [{ training: { steps: 0 } }, '"training.steps" is 0: '],
    [{ training: { learningRate: '1e-3' } }, '"training.learningRate" is "1e-3": '],
    [{ executor: { env: { 'A=B': 'c' } } }, '"executor.env.A=B" is "c": its name must be the name of a variable.'],
    [{ sampling: { topP: 2 } }, '"sampling.topP" is 2: '],
    [{ reward: { timeoutMs: 2 ** 31 } }, '"reward.timeoutMs" is 2147483648: '],
  ])('%j is refused', (config, message) => {
    expect(() => parseLocalConfig(config)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) }),
    )
  })

  it('have all their problems named at once', () => {
    const refused = () => parseLocalConfig({ training: { steps: 0, stepz: 1 }, foo: 1 })
    expect(refused).toThrow(
      expect.objectContaining({ details: { problems: [expect.any(String), expect.any(String), expect.any(String)] } }),
    )
  })

  it.each([
    ['gone.yaml', null, /there is no such file/],
    ['bad.yaml', 'training:\n  steps: [1, 2\n', /neither YAML nor JSON: .*line/s],
    [
      'run.sh',
      'python -m verl.trainer.main_ppo \\\n  trainer.logger=console\n',
      /this is a script, .*write what it sets as keys of a YAML file/,
    ],
    ['run', '#!/bin/bash\nset -x\n', /this is a script/],
    ['list.yaml', '- a\n- b\n', /no mapping of keys/],
    ['latin.yaml', Buffer.of(0x61, 0x3a, 0xe9, 0x0a), /not valid UTF-8/],
  ])('%s is refused by name', (name, content, message) => {
    const path = content === null ? join(directory, name) : file(name, content)
    expect(() => parseLocalConfig(path)).toThrow(message)
    expect(() => parseLocalConfig(path)).toThrow(path)
  })
})

describe('the keys of a translator', () => {
  const translator: KeyTranslator = {
    sections: ['theirs'],
    translate: (tree) => ({ config: { training: { steps: 9, passes: 2 } }, ignored: Object.keys(tree), warnings: [], problems: [] }),
  }

  it('are read where one of its sections stands, and our own win', () => {
    const { config, ignored } = parseLocalConfig({ theirs: { a: 1 }, other: 2, training: { passes: 3 } }, { translator })
    expect(config.training).toMatchObject({ steps: 9, passes: 3 })
    expect(ignored).toEqual(['theirs', 'other'])
  })

  it('are unknown where none of its sections stands', () => {
    expect(() => parseLocalConfig({ other: 2 }, { translator })).toThrow('"other" is no key of the configuration')
  })

  it('have its problems named beside ours', () => {
    const failing = { ...translator, translate: () => ({ config: {}, ignored: [], warnings: [], problems: ['theirs is wrong'] }) }
    expect(() => parseLocalConfig({ theirs: 1, training: { steps: 0 } }, { translator: failing })).toThrow(
      /theirs is wrong\n.*"training\.steps" is 0/,
    )
  })
})
