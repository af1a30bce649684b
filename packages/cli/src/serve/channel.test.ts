import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChatModel, chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import { readRun } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { filesHash } from '../../../rollout/src/channel/model-files.ts'
import { connectTrainerClient, type TrainerClientCall } from '../../../rollout/src/testing/trainer-client.ts'
import { runServer } from './run-server.ts'

let folder: string
let chat: ChatModel
let renderedIds: Int32Array

/** Asks `calls` times, each time with the earlier answers. */
const agent = (calls: number) => `
export const agent = async (task, context) => {
  const messages = [{ role: 'user', content: typeof task.input === 'string' ? task.input : task.input[0].content }]
  const { baseUrl, model } = context.policy()
  for (let call = 0; call < ${calls}; call++) {
    const response = await fetch(baseUrl + '/chat/completions', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model, messages }), signal: context.signal })
    const body = await response.json()
    if (!response.ok) throw Object.assign(new Error(body.error.message), { status: response.status })
    messages.push(body.choices[0].message, { role: 'user', content: 'Go on.' })
  }
  return messages.at(-2).content
}
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'serve-channel-'))
  const directory = join(folder, 'model')
  const { stopTokenIds } = await writeTinyModel({ directory, template: chatMlTemplate })
  chat = await loadChatModel({ directory, stopTokenIds })
  renderedIds = chat.createConversation().prepare({ messages: [{ role: 'user', content: 'Hello.' }], tools: [] }).promptTokenIds
  await writeFile(join(folder, 'agent.mjs'), agent(2))
  await writeFile(join(folder, 'long.mjs'), agent(9))
  await writeFile(join(folder, 'reward.mjs'), 'export const exact = (source, solution, truth) => (solution === truth ? 1 : 0)\n')
})
afterAll(() => rm(folder, { recursive: true }))

async function serve(name: string, model: object, rollouts: object, more: object = {}) {
  const file = join(folder, `${name}.yaml`)
  const config = {
    gateway: { port: 0, adminToken: 'an admin token of tests' },
    models: { policy: { kind: 'channel', ...model } },
    recording: `./${name}`,
    rollouts: { port: 0, token: 'secret', agent: './agent.mjs#agent', ...rollouts },
    drainMs: 100,
    ...more,
  }
  await writeFile(file, JSON.stringify(config))
  const stop = new AbortController()
  let shown = ''
  const started = Promise.withResolvers<void>()
  const ended = runServer({
    file,
    signal: stop.signal,
    write(text) {
      shown += text
      if (shown.includes('Ctrl-C ends')) started.resolve()
    },
  })
  await Promise.race([started.promise, ended])
  return {
    url: /channel +ws:\/\/(\S+)\/v1\/channel/.exec(shown)?.[1]?.replace(/^/, 'http://') ?? '',
    gateway: /gateway +(\S+)/.exec(shown)?.[1] ?? '',
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

/** A trainer client of the tiny model that says `text` each time. */
const say = (text: string) => () => ({ ids: [...chat.encode(text), 257] })

test('a trainer with files of its own drives agents behind serve and scores by itself', async () => {
  await using served = await serve('native', {}, {})
  const openSession = () =>
    fetch(`${served.gateway}/v1/sessions`, { method: 'POST', headers: { authorization: 'Bearer an admin token of tests' }, body: '{}' })
  expect([(await openSession()).status, (await fetch(`${served.gateway}/ready`)).status]).toEqual([503, 503])
  const names = await readdir(join(folder, 'model'))
  const files = new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, 'model', name))] as const)))
  const calls: TrainerClientCall[] = []
  const client = await connectTrainerClient({
    url: served.url,
    token: 'secret',
    renderedIds,
    files,
    hello: { tokenizerHash: filesHash(files) },
    sample(call) {
      calls.push(call)
      return say(calls.length === 1 ? 'First.' : 'Second.')()
    },
  })
  expect(client.welcome).toMatchObject({ needFiles: true, settings: { reward: 'native' } })
  expect([(await openSession()).status, (await fetch(`${served.gateway}/ready`)).status]).toEqual([201, 200])
  const result = await client.submit({ uid: 'a' })
  expect(result).toMatchObject({ status: 'done', reward: null, answer: 'Second.', solution: 'Second.', turns: 2, omitted: {} })
  const [first, second] = calls
  expect(first).toMatchObject({ agent: 'agent', sampling: { maxTokens: 512 } })
  const ids = Array.from(result.tokens[0]!.ids)
  expect(ids).toEqual([...second!.promptIds, ...chat.encode('Second.'), 257])
  expect(ids.slice(0, result.rows[0]!.promptLength)).toEqual(Array.from(first!.promptIds))
  const masked = ids.filter((_, index) => result.tokens[0]!.mask[index] === 1)
  for (const name of ['tokenizer.json', 'tokenizer_config.json'])
    expect(await readFile(join(folder, 'native', 'rollouts', 'tokenizer', name))).toEqual(files.get(name))
  expect(masked).toEqual([...chat.encode('First.'), 257, ...chat.encode('Second.'), 257])
  await client.close()
})

test('rows of an agent that is not served are refused at the start', async () => {
  await expect(serve('role', { rows: { role: 'planner' } }, {})).rejects.toThrow(
    'rows.role is "planner", which is no agent of the program; the trained agents are "agent".',
  )
})

test('rewards of serve score rows with their own answers; a conversation ends where a row must', async () => {
  await using served = await serve(
    'scored',
    { path: './model', maxCompletionTokens: 20 },
    { agent: './long.mjs#agent' },
    { reward: { path: './reward.mjs', name: 'exact' }, evaluation: { kindKey: 'level' } },
  )
  const hello = { limits: { maxPromptTokens: 512, maxResponseTokens: 100, contextLength: 2048 } }
  const client = await connectTrainerClient({ url: served.url, token: 'secret', renderedIds, hello, sample: say('Yes.') })
  expect(client.welcome).toMatchObject({ needFiles: false, settings: { reward: 'service' } })
  const result = await client.submit({ uid: 'a', row: { rewardModel: { ground_truth: 'Yes.' }, extraInfo: { level: 'easy' } } })
  // The policy talked too long, so its last answer was cut or the call after it refused. That is worth 0, and every row still fits.
  expect(result).toMatchObject({ status: 'done', stopReason: 'context-overflow', reward: 0, rows: [{ reward: 0 }] })
  expect(result.rows[0]!.length - result.rows[0]!.promptLength).toBeLessThanOrEqual(100)
  const run = readRun(join(folder, 'scored', 'rollouts'))
  onTestFinished(() => run.close())
  expect(run.rolloutRows().rows).toMatchObject([{ kind: 'easy' }])
  await client.close()
})
