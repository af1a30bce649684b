import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { describeModel } from '@aworld-train/core'
import { createGateway } from '@aworld-train/gateway'
import { writeTinyModel } from '@aworld-train/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createToySglang } from '../../../engines/src/remote/testing/sglang-server.ts'
import { createToyVllm } from '../../../engines/src/remote/testing/vllm-server.ts'
import { openModels } from './open-models.ts'
import { parseServeConfig } from './read-serve-config.ts'

async function modelFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'open-models-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  return directory
}

async function open(directory: string, models: object) {
  const config = parseServeConfig({ models }, 'serve.yaml')
  const stack = new AsyncDisposableStack()
  onTestFinished(() => stack.disposeAsync())
  return { config, opened: await openModels({ config, directory, recording: null, stack }) }
}

test('servers of others, third parties and their modes become routes of the gateway', async () => {
  const directory = await modelFolder()
  const [vllm, sglang] = [await createToyVllm(), await createToySglang()]
  const { opened } = await open(directory, {
    tokens: { kind: 'vllm', urls: [vllm.url], folder: './model' },
    chat: { kind: 'sglang', mode: 'chat', urls: [sglang.url], contextLength: 512 },
    judge: { kind: 'frozen', baseUrl: 'https://api.example.com/v1', model: 'large', mode: 'record', cassette: './answers.jsonl' },
  })
  expect(opened.map(({ name, route }) => [name, route.kind])).toEqual([
    ['tokens', 'token'],
    ['chat', 'chat'],
    ['judge', 'frozen'],
  ])
  expect(opened[2]!.route).toMatchObject({ cassette: { path: join(directory, 'answers.jsonl'), mode: 'record' } })
  expect(opened[0]!.description).toBe(`vllm, token engine, 1 server: ${vllm.url}`)
  await Promise.all([vllm.close(), sglang.close()])
})

test('what a model reads of tools and says of calls is that of its settings; a server that renders itself cuts nothing', async () => {
  const directory = await modelFolder()
  await using stack = new AsyncDisposableStack()
  const { url } = stack.adopt(await createToyVllm(), (each) => each.close())
  const vllm = { kind: 'vllm', urls: [url], folder: './model', toolAnswers: { maxTokens: 9 } }
  const { opened } = await open(directory, {
    cut: { ...vllm, malformedCalls: 'answer' },
    whole: { ...vllm, toolAnswers: { cut: 'head' } },
  })
  expect(opened.map(({ route }) => route)).toMatchObject([
    { toolAnswers: { maxTokens: 9, cut: 'middle' }, malformedCalls: 'answer' },
    { toolAnswers: { maxTokens: null, cut: 'head' }, malformedCalls: 'tool-error' },
  ])
  await expect(open(directory, { passed: { ...vllm, mode: 'chat' } })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('models.passed.toolAnswers cuts prompts that the gateway renders'),
  })
})

test('the largest prompt of a model is the one of its settings, else that of its context', async () => {
  const directory = await modelFolder()
  const server = await createToyVllm()
  const vllm = { kind: 'vllm', urls: [server.url], folder: './model', contextLength: 64 }
  const { opened } = await open(directory, { small: { ...vllm, maxPromptBytes: 50 }, standard: vllm })
  const gateway = await createGateway({ models: Object.fromEntries(opened.map(({ name, route }) => [name, route])), seed: 1 })
  const agents = [{ name: 'agent', trainable: true }]
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 2, stop: [], seed: 0 }
  const session = gateway.open({ rollout: 'a', attempt: 0, taskId: 'a', sample: 0, policy: 'small', sampling, agents })
  const refusal = async (model: string) => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x'.repeat(2_000) }] })
    const response = await fetch(`${session.endpoint('agent').baseUrl}/chat/completions`, { method: 'POST', body })
    return ((await response.json()) as { error: { message: string } }).error.message
  }
  expect(await refusal('small')).toContain('a prompt may have 50 (maxPromptBytes)')
  expect(await refusal('standard')).toContain('a prompt may have 1024 (maxPromptBytes)')
  await gateway.close()
  await server.close()
})

test('a gateway is ready while one of its servers takes calls, and says which do not', async () => {
  const directory = await modelFolder()
  const servers = [await createToyVllm(), await createToyVllm()]
  const [first, second] = servers.map(({ url }) => url) as [string, string]
  const limits = { probeIntervalMs: 20 }
  const { opened } = await open(directory, { policy: { kind: 'vllm', urls: [first, second], folder: './model', limits } })
  const gateway = await createGateway({ models: { policy: opened[0]!.route }, seed: 1 })
  onTestFinished(() => gateway.close())
  const ready = async () => (await fetch(`${gateway.url}/ready`)).status
  await expect.poll(ready).toBe(200)
  const gauge = async (url: string) =>
    new RegExp(`replica_ready\\{model="policy",replica="${new URL(url).host}"\\} (\\d)`).exec(await gateway.metrics())?.[1]
  await servers[0]!.close()
  await expect.poll(() => gauge(first)).toBe('0')
  expect([await ready(), await gauge(second)]).toEqual([200, '1'])
  await servers[1]!.close()
  await expect.poll(ready).toBe(503)
  expect(gateway.notReady()).toEqual([expect.stringMatching(/^model "policy": no server takes calls \(127.0.0.1:\d+ \S+/)])
})

test('what a folder lacks is named', async () => {
  const directory = await modelFolder()
  const config = join(directory, 'model/config.json')
  const modelConfig = JSON.parse(await readFile(config, 'utf8'))
  const describe = (contextLength: number | null = null) => describeModel({ name: 'm', directory: join(directory, 'model'), contextLength })
  expect(await describe(100)).toMatchObject({ name: 'm', contextLength: 100, stopTokenIds: [expect.any(Number)] })
  await writeFile(config, JSON.stringify({ text_config: { ...modelConfig, vocab_size: 7, max_position_embeddings: 9 } }))
  expect(await describe()).toMatchObject({ contextLength: 9, vocabularySize: 7 })
  await writeFile(config, JSON.stringify({ ...modelConfig, max_position_embeddings: undefined }))
  await expect(describe()).rejects.toThrow(/has no "max_position_embeddings"; set contextLength/)
  await rm(config)
  await expect(describe()).rejects.toThrow(/There is no .*config.json; name the Hugging Face folder of model "m"/)
  await expect(open(directory, { a: { kind: 'vllm', urls: ['http://127.0.0.1:1'] } })).rejects.toThrow(/models.a needs "folder"/)
  await expect(open(directory, { a: { kind: 'vllm', mode: 'chat', urls: ['http://127.0.0.1:1'] } })).rejects.toThrow(
    /models.a needs "contextLength"/,
  )
})

test('a checkpoint of several policies is no model, and the error says which there are', async () => {
  const directory = await modelFolder()
  for (const name of ['lead', 'reader']) await cp(join(directory, 'model'), join(directory, 'step-000001', name), { recursive: true })
  await expect(open(directory, { served: { kind: 'local', path: './step-000001' } })).rejects.toThrow(
    `models.served.path is a checkpoint of several policies, "lead", "reader"; name the folder of one, such as ${join(directory, 'step-000001', 'lead')}`,
  )
})
