import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { WeightReport } from '@aworld-train/core'
import { createGateway } from '@aworld-train/gateway'
import { writeTinyModel } from '@aworld-train/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createToySglang } from '../../../engines/src/remote/testing/sglang-server.ts'
import { createToyVllm } from '../../../engines/src/remote/testing/vllm-server.ts'
import { openModels } from './open-models.ts'
import { parseServeConfig } from './read-serve-config.ts'

const token = 'an-admin-token-of-some-length'

/** Opens models of a configuration behind a gateway, as `serve` does. */
async function serve(models: object) {
  const directory = await mkdtemp(join(tmpdir(), 'open-fleets-'))
  const stack = new AsyncDisposableStack()
  onTestFinished(async () => {
    await stack.disposeAsync()
    await rm(directory, { recursive: true })
  })
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const opened = await openModels({ config: parseServeConfig({ models }, 'serve.yaml'), directory, recording: null, stack })
  const weights = Object.fromEntries(opened.flatMap(({ name, publish }) => (publish ? [[name, publish] as const] : [])))
  const routes = Object.fromEntries(opened.map(({ name, route }) => [name, route]))
  const gateway = stack.adopt(await createGateway({ models: routes, seed: 1, admin: { token, weights } }), (each) => each.close())
  const publish = async (name: string, body: object) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${gateway.url}/v1/models/${name}/weights`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, json: (await answer.json()) as object }
  }
  /** Makes one call to a model. Resolves to its answer and the recorded turn. */
  async function turnOf(policy: string, rollout: string) {
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 }
    const agents = [{ name: 'agent', trainable: true, model: policy }]
    const session = gateway.open({ rollout, attempt: 0, taskId: 't', sample: 0, policy, sampling, agents })
    const { baseUrl } = session.endpoint('agent')
    const body = JSON.stringify({ model: policy, messages: [{ role: 'user', content: 'Hi.' }] })
    const answer = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', body })
    const answerText = await answer.text()
    const [trajectory] = await session.close()
    return { status: answer.status, text: answerText, turn: trajectory?.turns[0] }
  }
  return { opened, gateway, publish, turnOf, directory }
}

const limits = { probeIntervalMs: 20, unavailableMs: 300 }

test.each([
  ['vllm', createToyVllm],
  ['sglang', createToySglang],
] as const)('a trainer updates %s servers behind serve, from a folder and by hand', async (kind, create) => {
  const servers = [await create(), await create()]
  onTestFinished(() => Promise.all(servers.map((server) => server.close())).then(() => {}))
  const { publish, turnOf, gateway } = await serve({
    policy: { kind, urls: servers.map(({ url }) => url), folder: './model', served: 'toy', limits },
  })
  const first = await publish('policy', { version: 1, directory: '/steps/step-1' })
  expect([first.status, WeightReport.parse(first.json)]).toEqual([
    200,
    expect.objectContaining({
      version: 1,
      policy: null,
      replicas: servers.map(({ url }) => ({ server: url, difference: null, error: null })),
    }),
  ])
  expect(servers.map(({ state }) => state.weights)).toEqual([1, 1])
  expect((await turnOf('policy', 'a')).turn?.weightVersions).toEqual([{ fromToken: 0, version: 1 }])
  expect(await publish('policy', { version: 1, directory: '/steps/step-1' })).toMatchObject({
    status: 409,
    json: { error: { code: 'version_conflict' } },
  })
  const missing = await publish('policy', { version: 2, directory: '/nothing' })
  expect([missing.status, (await turnOf('policy', 'b')).turn?.weightVersions]).toEqual([
    kind === 'vllm' ? 503 : 400,
    [{ fromToken: 0, version: 1 }],
  ])

  // From here on the trainer loads the weights itself.
  for (const { state } of servers) state.weights = 2
  expect((await publish('policy', { version: 2 })).status).toBe(200)
  const { turn } = await turnOf('policy', 'c')
  expect(turn?.weightVersions).toEqual([{ fromToken: 0, version: 2 }])
  expect(await (await fetch(`${gateway.url}/health`)).json()).toMatchObject({ weightVersion: 2 })
})

test('an adapter is a model of its own and shares the servers of its base', async () => {
  const server = await createToyVllm()
  onTestFinished(() => server.close())
  const { opened, publish, turnOf, gateway } = await serve({
    base: { kind: 'vllm', urls: [server.url], folder: './model', served: 'toy', limits: { ...limits, probeIntervalMs: 60_000 } },
    helper: { kind: 'vllm', urls: [`${server.url}/`], folder: './model', served: 'toy', policy: 'lora-1' },
    spoken: { kind: 'vllm', urls: [server.url], mode: 'chat', contextLength: 64, policy: 'lora-1' },
  })
  expect(opened.map(({ description }) => description.replace(/: http.*/, ''))).toEqual([
    'vllm, token engine, 1 server',
    'vllm, adapter lora-1, token engine, 1 server',
    'vllm, adapter lora-1, chat engine, 1 server',
  ])
  // One fleet asks the server for its health, rather than three.
  expect(server.seen.filter(({ path }) => path === '/weight_info').length).toBeLessThan(3)
  expect((await publish('helper', { version: 4, directory: '/adapter-9' })).json).toMatchObject({ version: 4, policy: 'lora-1' })
  expect(server.state.adapters.get('lora-1')).toBe(9)
  const [named, plain] = [await turnOf('helper', 'a'), await turnOf('base', 'b')]
  expect([named.turn?.weightVersions, plain.turn?.weightVersions]).toEqual([[{ fromToken: 0, version: 4 }], [{ fromToken: 0, version: 0 }]])
  expect(server.seen.filter(({ path }) => path.endsWith('/generate')).map(({ json }) => json['model'])).toEqual(['lora-1', 'toy'])
  expect(await publish('helper', { version: 5, directory: '/adapter-9', policy: 'other' })).toMatchObject({
    status: 400,
    json: { error: { param: 'policy', message: expect.stringMatching(/is the adapter "lora-1", not "other"/) } },
  })
  await publish('base', { version: 6, directory: '/weights-6' })
  const after = await turnOf('helper', 'c')
  expect(after.turn?.weightVersions).toEqual([{ fromToken: 0, version: 4 }])
  expect(gateway.notReady()).toEqual([])
})

test('the routes of a vLLM are those of the configuration', async () => {
  const server = await createToyVllm()
  onTestFinished(() => server.close())
  const { publish, turnOf } = await serve({
    policy: {
      kind: 'vllm',
      urls: [server.url],
      folder: './model',
      served: 'toy',
      route: 'completions',
      loadMethod: 'reload_weights',
      limits,
    },
  })
  expect((await turnOf('policy', 'a')).status).toBe(200)
  expect(server.seen.map(({ path }) => path)).toContain('/v1/completions')
  await publish('policy', { version: 1, directory: '/weights-1' })
  expect(server.seen.find(({ path }) => path === '/collective_rpc')!.json).toEqual({
    method: 'reload_weights',
    kwargs: { weights_path: '/weights-1' },
  })
})

test('models of the same servers cannot differ in what they share', async () => {
  const url = 'http://127.0.0.1:1'
  const base = { kind: 'vllm', urls: [url], folder: './model' }
  const cases = [
    ['limits', { limits: { maxInFlight: 3 } }],
    ['apiKey', { apiKey: 'secret' }],
    ['loadMethod', { loadMethod: 'reload_weights' }],
  ] as const
  for (const [key, changes] of cases)
    await expect(serve({ base, other: { ...base, ...changes } })).rejects.toThrow(`models.other.${key} differs from that of models.base`)
  const { opened } = await serve({ base: { ...base, limits: { maxInFlight: 3 } }, other: base })
  expect(opened).toHaveLength(2)
})
