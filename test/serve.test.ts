import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RolloutRequest, SessionRecord } from '@aworld-train/core'
import { createRolloutClient } from '@aworld-train/rollout'
import OpenAI from 'openai'
import { Agent, fetch as fetchWith } from 'undici'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { runServer } from '../packages/cli/src/serve/run-server.ts'
import { repository, runCli } from './support/run-cli.ts'
import { selfSigned } from './support/self-signed.ts'
import { makeTinyModel } from './support/tiny-model.ts'
import { makeProject } from './support/tiny-project.ts'

let folder: string
let project: string
const children: ChildProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-serve-'))
  const model = await makeTinyModel(join(folder, 'model'))
  project = (await makeProject(folder, model)).folder
  await writeFile(
    join(project, 'slow-agent.ts'),
    'export default (_task, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))\n',
  )
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const settings = {
  gateway: { port: 0 },
  models: { policy: { kind: 'local', path: '../model', simd: 'plain', threads: 1 } },
  aliases: { '*': 'policy' },
  sampling: { maxTokens: 6 },
  recording: 'recorded',
  rollouts: { port: 0, agent: './agent.ts#agent', answers: './train.jsonl' },
  reward: { path: './reward.ts', name: 'saysYes' },
}

/** Starts `serve --config` and waits for the last line of what it prints at its start. */
async function serve(name: string, config: object) {
  const file = join(project, `${name}.yaml`)
  await writeFile(file, JSON.stringify(config))
  return await start(['--config', file])
}

async function start(options: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [join(repository, 'packages/cli/src/main.ts'), 'serve', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  children.push(child)
  let shown = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text
      if (shown.includes('Ctrl-C ends\n')) resolve()
    })
    child.on('exit', () => reject(new Error(`serve ended: ${shown}`)))
  })
  const find = (row: string) => new RegExp(`^${row} +(\\S+)`, 'm').exec(shown)?.[1] ?? ''
  return {
    shown: () => shown,
    url: find('gateway'),
    baseUrl: find('baseURL'),
    admin: find('admin'),
    rollouts: find('rollouts').replace('/v1/rollouts', ''),
    async end(signal: NodeJS.Signals) {
      const ended = new Promise((resolve) => child.on('exit', (code, by) => resolve(code ?? by)))
      child.kill(signal)
      return await ended
    },
  }
}

const rollout = (key: string, limits: RolloutRequest['limits'] = {}): RolloutRequest => ({
  version: 1,
  key,
  task: { version: 1, id: 'task-10', hash: 'h', input: 'Is 10 even?', data: {}, dataSource: 'parity', extraInfo: {} },
  group: 'g',
  sample: 0,
  split: 'train',
  policy: 'policy',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 6, stop: [], seed: 0 },
  limits,
})

it('serves plain clients, sessions of other programs and rollouts, and keeps what is finished over a kill', async () => {
  const first = await serve('whole', settings)
  for (const part of [
    'limits of the gateway',
    'maxBodyBytes',
    '8 x the largest maxPromptBytes',
    'limits of policy',
    '64 MiB',
    'limits of clients',
    'limits of rollouts',
    'concurrency',
  ])
    expect(first.shown()).toContain(part)
  const ask = { model: 'any', messages: [{ role: 'user' as const, content: 'Is 12 even?' }] }
  const plain = new OpenAI({ baseURL: first.baseUrl, apiKey: 'any', maxRetries: 0 })
  expect((await plain.chat.completions.create(ask)).usage?.completion_tokens).toBeGreaterThan(0)

  const admin = { authorization: `Bearer ${first.admin}` }
  const opened = (await (await fetch(`${first.url}/v1/sessions`, { method: 'POST', headers: admin, body: '{}' })).json()) as {
    id: string
    agents: { agent: { baseUrl: string; apiKey: string } }
  }
  const { baseUrl: baseURL, apiKey } = opened.agents.agent
  await new OpenAI({ baseURL, apiKey, maxRetries: 0 }).chat.completions.create(ask)
  const record = await (await fetch(`${first.url}/v1/sessions/${opened.id}`, { method: 'DELETE', headers: admin })).json()
  const { trajectories } = z.decode(SessionRecord, record as z.input<typeof SessionRecord>)
  expect(trajectories[0]!.turns[0]!.completionTokenIds.length).toBeGreaterThan(0)
  const kept = (await readFile(join(project, 'recorded/turns.jsonl'), 'utf8')).trim().split('\n')
  expect(kept.map((line) => JSON.parse(line).rollout)).toEqual(['clients', trajectories[0] && (record as { rollout: string }).rollout])

  const client = createRolloutClient({ url: first.rollouts })
  const episode = await client.run(rollout('a'), AbortSignal.timeout(120_000))
  expect(episode).toMatchObject({ rollout: 'a', stopReason: expect.stringMatching(/completed|truncated/), reward: expect.any(Number) })
  const { samples } = await client.get('a')
  expect(samples[0]!.provenance).toMatchObject({ rollout: 'a', taskId: 'task-10' })
  const metrics = await (await fetch(`${first.url}/metrics`)).text()
  expect(metrics).toMatch(/calls_total\{model="policy",dialect="chat-completions",outcome="ok",code=""\} 3\n/)
  expect((await fetch(`${first.url}/ready`)).status).toBe(200)
  const stranger = rollout('b')
  await expect(client.submit({ ...stranger, task: { ...stranger.task, id: 'task-99' } })).rejects.toMatchObject({
    code: 'ROLLOUT_INVALID',
    message: expect.stringMatching(/"task-99" is not in \.\/train\.jsonl/),
  })
  await client.close()
  expect(await first.end('SIGKILL')).toBe('SIGKILL')

  const second = await serve('whole', settings)
  const again = createRolloutClient({ url: second.rollouts })
  expect((await again.get('a')).episode).toEqual(episode)
  expect((await again.submit(rollout('a'))).status).toBe('done')
  await expect(again.submit(rollout('a', { maxTurns: 1 }))).rejects.toMatchObject({ code: 'ROLLOUT_CONFLICT' })
  await again.close()
  expect(await second.end('SIGTERM')).toBe(0)
  expect(second.shown()).toContain('nothing was under way any more')
})

it('plain clients keep their address and their key over restarts, whose log never shows the key', async () => {
  const key = 'a-key-that-clients-send'
  await writeFile(join(project, 'client.key'), `${key}\n`)
  const clients = { path: 'agents', key: { file: 'client.key' } }
  const config = { models: settings.models, aliases: settings.aliases, sampling: settings.sampling, gateway: { port: 0 }, clients }
  const first = await serve('address', config)
  expect(first.baseUrl).toBe(`${first.url}/agents/v1`)
  const client = new OpenAI({ baseURL: first.baseUrl, apiKey: key, maxRetries: 0 })
  const ask = () => client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'Is 12 even?' }] })
  expect((await ask()).usage?.completion_tokens).toBeGreaterThan(0)
  const lost = new OpenAI({ baseURL: `${first.url}/v1`, apiKey: key, maxRetries: 0 })
  await expect(lost.chat.completions.create({ model: 'any', messages: [] })).rejects.toMatchObject({
    status: 404,
    message: expect.stringContaining('"aworld-train serve" prints it'),
  })
  await first.end('SIGKILL')

  const port = new URL(first.url).port
  const second = await serve('address', { ...config, gateway: { port: Number(port) } })
  expect((await ask()).usage?.completion_tokens).toBeGreaterThan(0)
  await second.end('SIGKILL')
  const model = join(folder, 'model')
  const third = await start([model, '--port', port, '--path', 'agents', '--key-env', 'CLIENT_KEY'], { CLIENT_KEY: key })
  expect(third.baseUrl).toBe(first.baseUrl)
  expect((await ask()).usage?.completion_tokens).toBeGreaterThan(0)
  for (const each of [first, second, third]) expect(each.shown()).not.toContain(key)

  await writeFile(join(project, 'both.yaml'), JSON.stringify({ ...config, gateway: { port: 0, adminToken: key } }))
  const both = runServer({ file: join(project, 'both.yaml'), signal: AbortSignal.abort(), write: () => {} })
  await expect(both).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(/clients.key is the admin token/) })
  const bad = await runCli(['serve', model, '--path', 'agents'])
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringMatching(/--path needs --key-env or --key-file/)])
})

it('what was answered with 202 runs after a kill without being asked again, and who waited gets the result', async () => {
  await writeFile(
    join(project, 'gated-agent.ts'),
    `import { existsSync } from 'node:fs'
export default async (_task, { signal }) => {
  while (!existsSync(new URL('./open', import.meta.url))) await new Promise((resolve) => setTimeout(resolve, 20))
  signal.throwIfAborted()
  return { answer: 'yes', messages: [] }
}
`,
  )
  const rollouts = { port: 0, agent: './gated-agent.ts', concurrency: 1 }
  const config = { ...settings, recording: 'durable', rollouts, clients: null }
  const first = await serve('durable', config)
  const client = createRolloutClient({ url: first.rollouts, retries: 9 })
  const waits = client.run(rollout('waits'), AbortSignal.timeout(120_000))
  for (const key of ['a', 'b', 'c']) expect((await client.submit(rollout(key))).status).toBe('queued')
  await client.submit(rollout('given-up'))
  await client.cancel('given-up')
  expect(await first.end('SIGKILL')).toBe('SIGKILL')
  await writeFile(join(project, 'open'), '')

  const second = await serve('durable', { ...config, rollouts: { ...rollouts, port: Number(new URL(first.rollouts).port) } })
  expect(await waits).toMatchObject({ rollout: 'waits', answer: 'yes' })
  for (const key of ['a', 'b', 'c']) expect(await client.get(key, { waitMs: 30_000 })).toMatchObject({ status: 'done' })
  expect((await client.get('given-up')).status).toBe('cancelled')
  await client.close()
  expect(await second.end('SIGTERM')).toBe(0)
})

it('at a signal it waits for what is under way, then says what it cut off', async () => {
  const rollouts = { port: 0, agent: './slow-agent.ts' }
  const served = await serve('slow', { ...settings, recording: 'slow', rollouts, clients: null, drainMs: 300 })
  expect(served.baseUrl).toBe('')
  const client = createRolloutClient({ url: served.rollouts, retries: 0 })
  await client.submit(rollout('a'))
  await expect.poll(async () => (await client.get('a')).status).toBe('running')
  expect(await served.end('SIGTERM')).toBe(0)
  expect(served.shown()).toMatch(/under way: 0 calls, 1 rollout running, 0 queued; waiting at most 0.3 s\n.*cut off: 0 calls, 1 rollout/s)
  await client.close()
})

it('TLS serves on any address; without it, beyond loopback, it does not start', async () => {
  const { cert, key } = selfSigned('localhost')
  await writeFile(join(project, 'cert.pem'), cert)
  await writeFile(join(project, 'key.pem'), key)
  const tls = { cert: 'cert.pem', key: 'key.pem' }
  const { rollouts: _, reward: __, ...withoutRollouts } = settings
  const served = await serve('tls', { ...withoutRollouts, recording: null, gateway: { host: '0.0.0.0', port: 0, tls } })
  expect(served.url).toMatch(/^https:/)
  expect(served.shown()).toContain('set gateway.publicUrl')
  const dispatcher = new Agent({ connect: { ca: cert } })
  const health = await fetchWith(`${served.url.replace('127.0.0.1', 'localhost')}/health`, { dispatcher })
  expect(await health.json()).toMatchObject({ status: 'ok' })
  await expect(fetch(served.url.replace('https', 'http'))).rejects.toThrow()
  await expect(fetch(served.url)).rejects.toThrow()
  const metrics = await (await fetchWith(`${served.url.replace('127.0.0.1', 'localhost')}/metrics`, { dispatcher })).text()
  expect(metrics).toMatch(/refused_total\{reason="tls-failed"\} [12]\n/)
  await dispatcher.close()
  expect(await served.end('SIGINT')).toBe(0)

  const refusals: readonly (readonly [object, RegExp])[] = [
    [{ ...settings, gateway: { host: '0.0.0.0', port: 0 } }, /The gateway would answer on 0.0.0.0 without encryption/],
    [
      { ...settings, rollouts: { ...settings.rollouts, host: '0.0.0.0' } },
      /The rollout service would answer on 0.0.0.0 without encryption/,
    ],
    [{ ...settings, gateway: { tls: { cert: 'none.pem', key: 'key.pem' } } }, /tls.cert cannot be read/],
    [{ ...settings, modells: {} }, /"modells" is no key of the configuration. Did you mean "models"/],
  ]
  for (const [config, message] of refusals) {
    const file = join(project, 'bad.yaml')
    await writeFile(file, JSON.stringify(config))
    const started = runServer({ file, signal: AbortSignal.abort(), write: () => {} })
    await expect(started).rejects.toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) })
  }
  const { code, stderr } = await runCli(['serve'])
  expect([code, stderr]).toEqual([2, expect.stringMatching(/Name the folder of a model, or a configuration with --config FILE/)])
})
