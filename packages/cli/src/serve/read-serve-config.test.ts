import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalConfig, readSecret } from '@aworld-train/training'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limitRows } from './print-table.ts'
import { parseServeConfig, readClientKey, readServeConfig } from './read-serve-config.ts'

const local = { kind: 'local', path: './model' }
const frozen = { kind: 'frozen', baseUrl: 'https://api.example.com/v1', model: 'large' }
const problemsOf = (value: unknown): readonly string[] => {
  try {
    parseServeConfig(value, 'serve.yaml')
    return []
  } catch (error) {
    return (error as { details: { problems: string[] } }).details.problems
  }
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'serve-config-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('one model is enough; the rest has defaults that are safe', () => {
  const config = parseServeConfig({ models: { policy: local } }, 'serve.yaml')
  expect(config.gateway).toMatchObject({ host: '127.0.0.1', port: 8080, insecure: false, tls: null, adminToken: null })
  expect(config.models['policy']).toMatchObject({ kind: 'local', simd: 'auto', threads: null })
  expect(config).toMatchObject({ rollouts: null, recording: null, clients: { maxCallsInFlight: 256 }, drainMs: 30_000 })
})

test('every unknown key is an error, with what was probably meant', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ gatway: {} }, '"gatway" is no key of the configuration. Did you mean "gateway"?'],
    [{ gateway: { limits: { maxSocket: 1 } } }, '"gateway.limits.maxSocket" is no key of the configuration. Did you mean "maxSockets"?'],
    [{ models: { a: { ...local, treads: 2 } } }, '"models.a.treads" is no key of the configuration. Did you mean "threads"?'],
    [{ models: { a: { ...frozen, basUrl: 'x' } } }, '"models.a.basUrl" is no key of the configuration. Did you mean "baseUrl"?'],
    [
      { rollouts: { agent: './a.ts', concurency: 2 }, recording: 'r' },
      '"rollouts.concurency" is no key of the configuration. Did you mean "concurrency"?',
    ],
    [
      { models: { a: { kind: 'vllm', urls: ['http://a'], limits: { maxInflight: 2 } } } },
      '"models.a.limits.maxInflight" is no key of the configuration. Did you mean "maxInFlight"?',
    ],
  ]
  for (const [changes, problem] of cases) expect(problemsOf({ models: { policy: local }, ...changes })).toEqual([problem])
})

test('all problems are said at once, with the value that is wrong', () => {
  const problems = problemsOf({
    gateway: { port: 'high', publicUrl: 'https://a.example/with/path' },
    models: { a: { kind: 'lokal', path: 'x' }, b: { kind: 'vllm', urls: ['gpu-1:8000'] }, c: {} },
  })
  expect(problems).toHaveLength(5)
  expect(problems[0]).toMatch(/^"gateway.port" is "high"/)
  expect(problems[1]).toMatch(/^"gateway.publicUrl" is .*no path/)
  expect(problems[2]).toMatch(/^"models.a.kind" is "lokal"/)
  expect(problems[3]).toMatch(/^"models.b.urls.0" is "gpu-1:8000": must begin with http/)
  expect(problems[4]).toMatch(/^"models.c.kind" is missing/)
})

test('what a value would have to be is said in words of the configuration', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ gateway: { port: 99_999 } }, '"gateway.port" is 99999: must be at most 65535.'],
    [{ gateway: { limits: { keepAwakeMs: 1e10 } } }, '"gateway.limits.keepAwakeMs" is 10000000000: must be at most 2147483647.'],
    [
      { gateway: { allowedHosts: ['https://a.example:8080'] } },
      '"gateway.allowedHosts.0" is "https://a.example:8080": must be a name alone, such as gateway.example, without scheme and port.',
    ],
    [
      { clients: { path: 'agents' } },
      '"clients.path" needs "clients.key": a URL that can be guessed is open to every program that reaches it.',
    ],
    [
      { clients: { path: 'a/b', key: { env: 'KEY' } } },
      '"clients.path" is "a/b": must be one part of a URL: at most 128 letters, digits, "_" and "-".',
    ],
    [
      { clients: { path: 'health', key: { env: 'KEY' } } },
      '"clients.path" is "health": must be another than v1, r, health, ready, metrics, which the gateway has for itself.',
    ],
    [{ clients: { path: 5, key: { env: 'KEY' } } }, '"clients.path" is 5: must be text.'],
    [{ clients: { key: 5 } }, '"clients.key" is 5: must be text, or must be a section.'],
    [{ drainMs: 1e10 }, '"drainMs" is 10000000000: must be at most 2147483647.'],
    [{ gateway: { limits: { maxKeptBytes: 0 } } }, '"gateway.limits.maxKeptBytes" is 0: must be at least 1.'],
    [{ gateway: { port: '80' } }, '"gateway.port" is "80": must be a number.'],
    [{ gateway: { port: 80.5 } }, '"gateway.port" is 80.5: must be a whole number.'],
    [{ gateway: { adminToken: 5 } }, '"gateway.adminToken" is 5: must be text, or must be a section.'],
    [{ gateway: { tls: { cert: 'c' } } }, '"gateway.tls.key" is missing: must be text.'],
    [{ sampling: { temperature: -1 } }, '"sampling.temperature" is -1: must be at least 0.'],
    [{ history: 'lop' }, '"history" is "lop": must be one of template, loop, as-sampled. Did you mean "loop"?'],
    [{ models: [] }, '"models" is []: must be a section.'],
    [
      { models: { a: { kind: 'vllm', urls: ['http://gpu:8000/v1/'] } } },
      '"models.a.urls.0" is "http://gpu:8000/v1/": must end before /v1.',
    ],
    [{ models: { a: { kind: 'vllm', urls: [] } } }, '"models.a.urls" is []: must not be empty.'],
    [
      { models: { a: { kind: 'locl', path: 'x' } } },
      '"models.a.kind" is "locl": must be one of local, vllm, sglang, frozen, channel. Did you mean "local"?',
    ],
  ]
  for (const [changes, problem] of cases) expect(problemsOf({ models: { policy: local }, ...changes })).toEqual([problem])
  expect(problemsOf({})).toEqual(['"models" is missing: must be a section.'])
})

test('names that are no model, and rollouts that nothing keeps, are refused', () => {
  const models = { policy: local }
  expect(problemsOf({ models, defaultModel: 'polici', aliases: { '*': 'policy', 'gpt-4o': 'large' } })).toEqual([
    '"defaultModel" is "polici", which is no key of "models". Did you mean "policy"?',
    '"aliases.gpt-4o" is "large", which is no key of "models".',
  ])
  expect(problemsOf({ models, rollouts: { agent: './a.ts' } })).toEqual([expect.stringMatching(/"rollouts" needs "recording"/)])
  expect(problemsOf({ models, recording: './r', rollouts: { agent: './a.ts' }, executor: { workerNum: 0 } })).toEqual([
    expect.stringMatching(/"executor.workerNum" is 0: must be at least 1/),
  ])
  for (const section of ['reward', 'limits', 'executor', 'evaluation'])
    expect(problemsOf({ models, [section]: {} })).toEqual([expect.stringMatching(`"${section}" is of "rollouts"`)])
  const channel = { kind: 'channel', path: './model' }
  const kept = { recording: './r', rollouts: { agent: './a.ts' } }
  expect(problemsOf({ models: { channel } })).toEqual([
    expect.stringMatching(/"models.channel" is of kind channel, which needs "rollouts"/),
  ])
  expect(problemsOf({ models: { a: channel, b: channel }, ...kept })).toEqual([expect.stringMatching(/2 of kind channel \(a, b\)/)])
  expect(parseServeConfig({ models: { channel }, ...kept }, 'serve.yaml').models['channel']).toMatchObject({ rows: 'all', graceMs: 30_000 })
  expect(problemsOf({ models: {} })).toEqual([expect.stringMatching(/names no model/)])
  expect(problemsOf({})).toEqual([expect.stringMatching(/"models" is missing/)])
  expect(problemsOf([])).toEqual([expect.stringMatching(/the configuration is \[\]/)])
})

test('a file is YAML or JSON; what is neither, or not there, is said', () => {
  const file = join(folder, 'serve.yaml')
  writeFileSync(file, 'models:\n  policy: {kind: local, path: ./model}\n')
  expect(readServeConfig(file).models['policy']).toMatchObject({ path: './model' })
  writeFileSync(file, JSON.stringify({ models: { policy: local } }))
  expect(readServeConfig(file).models['policy']).toMatchObject({ path: './model' })
  writeFileSync(file, 'models: [\n')
  expect(() => readServeConfig(file)).toThrow(/neither YAML nor JSON/)
  expect(() => readServeConfig(join(folder, 'none.yaml'))).toThrow(/cannot be read.*correct the path after --config/)
})

test('a secret comes from the file or from the environment, which must have it', () => {
  expect(readSecret('in the configuration', 'a', folder)).toBe('in the configuration')
  expect(() => readSecret({ env: 'AWORLD_TRAIN_NOT_SET' }, 'rollouts.token', folder)).toThrow(
    /rollouts.token is to be read from AWORLD_TRAIN_NOT_SET, which is not set/,
  )
})

test('a secret comes from a file of its own, and a key of clients is one that headers carry', () => {
  const file = join(folder, 'key')
  const read = (text: string) => {
    writeFileSync(file, text)
    return readClientKey({ file: 'key' }, 'clients.key', folder)
  }
  expect(read('0123456789abcdef\n')).toBe('0123456789abcdef')
  expect(() => read(' \n')).toThrow(/clients.key is to be read from .*key, which is empty/)
  expect(() => read('short')).toThrow(/clients.key is shorter than 16 characters; take a random one/)
  expect(() => read('0123456789 abcdef')).toThrow(/clients.key has characters that no header carries/)
  expect(() => readSecret({ file: 'none' }, 'gateway.adminToken', folder)).toThrow(
    /gateway.adminToken cannot be read: .*none.*correct its path/,
  )
})

test('limits are printed in the units of a person', () => {
  expect(limitRows({ maxBodyBytes: 64 * 1024 * 1024, headersTimeoutMs: 30_000, keepMs: 1_500, maxSockets: 10 })).toEqual([
    ['maxBodyBytes', '64 MiB'],
    ['headersTimeoutMs', '30 s'],
    ['keepMs', '1500 ms'],
    ['maxSockets', '10'],
  ])
  expect(limitRows({ maxBodyBytes: null, maxPromptBytes: null })).toEqual([
    ['maxBodyBytes', '8 x the largest maxPromptBytes, at least 1 MiB'],
    ['maxPromptBytes', '16 B for each token of context'],
  ])
})

test('whoever submits a rollout says how long it may take, unless the configuration does', () => {
  const models = { policy: { kind: 'local', path: './model' } }
  expect(parseServeConfig({ models }, 'serve.yaml').limits.timeoutMs).toBeNull()
})

test('gateway, limits, executor, evaluation and reward are those of a training', () => {
  const ofTraining = {
    gateway: { host: '127.0.0.1', ignore: ['^Today .*$'], trainedCalls: 'all', publicUrl: 'http://coordinator' },
    limits: { maxTurns: 8, maxCost: 2, timeoutMs: 9_000 },
    executor: { workerNum: 2, slots: 4 },
    evaluation: { kindKey: 'kind' },
    reward: { path: './reward.ts', name: 'exact', unfinished: 'score', memoryMb: 64 },
  }
  const config = { ...ofTraining, models: { policy: local }, recording: './r', rollouts: { agent: './a.ts' } }
  const trained = LocalConfig.parse(ofTraining)
  const { reward, executor, limits, evaluation, gateway } = parseServeConfig(config, 'serve.yaml')
  expect([reward, executor]).toEqual([trained.reward, trained.executor])
  expect(limits).toEqual({ ...trained.limits, maxResponseTokens: null })
  expect(trained.evaluation).toMatchObject(evaluation)
  expect(gateway).toMatchObject({ ...trained.gateway, port: 8080 })
  expect(problemsOf({ ...config, evaluation: { temperature: 0 } })).toEqual([expect.stringMatching(/"evaluation.temperature" is no key/)])
})
