import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunEvaluationOptions, runEvaluation } from 'aworld-train'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { say, startThirdParty } from '../packages/gateway/src/testing/third-party.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'evaluation-doors-'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

/** The entries of a server's list of models, as its program writes them. */
const lists = {
  vllm: [{ id: 'solver', object: 'model', owned_by: 'vllm', root: '/models/solver', parent: null, max_model_len: 40960 }],
  sglang: [{ id: 'solver', object: 'model', owned_by: 'sglang', root: 'solver', parent: null, max_model_len: 32768 }],
  llamaCpp: [{ id: 'solver.gguf', aliases: ['solver'], tags: [], object: 'model', owned_by: 'llamacpp', meta: { n_ctx: 8192 } }],
}

/** A provider of every dialect: says the symbol of a metal, and another for each third question. */
const startProvider = (list?: readonly object[]) =>
  startThirdParty((call, response) => {
    const { path, raw } = call
    if (path.endsWith('/models')) {
      response.writeHead(list ? 200 : 404, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify(list ? { object: 'list', data: list } : { error: { message: 'Not found.' } }))
    }
    const [, metal = '', sample] = /symbol of (\w+), sample (\d+)/.exec(raw) ?? []
    const text = (metal.length + Number(sample)) % 3 === 0 ? '??' : metal.slice(0, 2)
    say(call, response, text)
  })

type Dialect = 'chat-completions' | 'messages' | 'responses'

/** A call of each dialect: its path, its body around a question, and the text of its answer. */
const calls: Readonly<Record<Dialect, { path: string; body: (question: string) => object; read: (answer: never) => string }>> = {
  'chat-completions': {
    path: '/chat/completions',
    body: (content) => ({ messages: [{ role: 'user', content }] }),
    read: ({ choices }: { choices: { message: { content: string } }[] }) => choices[0]!.message.content,
  },
  messages: {
    path: '/messages',
    body: (content) => ({ max_tokens: 100, messages: [{ role: 'user', content }] }),
    read: ({ content }: { content: { text: string }[] }) => content[0]!.text,
  },
  responses: {
    path: '/responses',
    body: (input) => ({ input }),
    read: ({ output }: { output: { content: { text: string }[] }[] }) => output[0]!.content[0]!.text,
  },
}

const agentOf =
  (dialect: Dialect): RunEvaluationOptions['agent'] =>
  async ({ input }, { baseUrl, apiKey, model, rollout }) => {
    const { path, body, read } = calls[dialect]
    const question = `The symbol of ${input}, sample ${rollout.split('/').at(-1)}?`
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
    const response = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify({ model, ...body(question) }) })
    if (!response.ok) throw new Error(await response.text())
    return read((await response.json()) as never)
  }

/** Evaluates, and leaves out of the report how the model is reached, the place and the times. */
async function evaluate(options: Partial<RunEvaluationOptions>) {
  const report = await runEvaluation({
    agent: agentOf('chat-completions'),
    dataset: ['gold', 'tin', 'silver', 'lead'].map((prompt, index) => ({
      id: prompt,
      prompt,
      answer: prompt.slice(0, 2),
      kind: index < 2 ? 'short' : 'long',
    })),
    rewardFunc: (_source, answer, truth) => Number(answer === truth),
    price: { input: 1, output: 10, cachedInput: 0.5 },
    samples: 3,
    kindKey: 'kind',
    name: 'doors',
    runPath: join(folder, 'runs'),
    fresh: true,
    onEvent: () => {},
    ...options,
  })
  const { path: _path, run: _run, model, startedAt: _startedAt, times: _times, perRollout, results, ...rest } = report
  // A model is counted under the name that it has in the configuration.
  const tokenReport = { ...rest.tokenReport, frozen: Object.values(rest.tokenReport.frozen) }
  return {
    model,
    report: {
      ...rest,
      tokenReport,
      perRollout: { ...perRollout, seconds: null },
      results: results.map((row) => ({ ...row, durationMs: null })),
    },
  }
}

test('one agent behind every door of a model has the same answers and the same report', async () => {
  await using provider = await startProvider()
  await using vllm = await startProvider(lists.vllm)
  await using sglang = await startProvider(lists.sglang)
  await using llamaCpp = await startProvider(lists.llamaCpp)
  const { url } = provider
  const first = await evaluate({ model: `${url}#solver` })
  expect(first).toMatchObject({
    model: `${url}#solver`,
    report: { answeredAs: ['solver'], failed: 0, rollouts: 12, usage: { promptTokens: 1200, completionTokens: 120, cachedTokens: 480 } },
  })
  expect(first.report.reward).toBeCloseTo(2 / 3)
  vi.stubEnv('OPENAI_API_KEY', 'key-of-openai')
  vi.stubEnv('OPENAI_BASE_URL', url)
  vi.stubEnv('ANTHROPIC_API_KEY', 'key-of-anthropic')
  vi.stubEnv('ANTHROPIC_BASE_URL', url.replace(/\/v1$/, ''))
  const candidate = { baseUrl: url, model: 'solver' }
  const doors: Readonly<Record<string, Partial<RunEvaluationOptions>>> = {
    'another API, messages': { model: `${url}#solver`, dialect: 'messages' },
    'a name in models': { model: 'candidate', config: { models: { candidate } } },
    openai: { model: 'openai:solver' },
    anthropic: { model: 'anthropic:solver' },
    'vLLM, whose only model needs no name': { model: vllm.url },
    'SGLang, without /v1': { model: `${sglang.url.replace(/\/v1$/, '')}#solver` },
    'llama.cpp, by an alias': { model: `${llamaCpp.url}#solver` },
    'an agent of messages': { model: `${url}#solver`, dialect: 'messages', agent: agentOf('messages') },
    'an agent of responses': { model: `${url}#solver`, dialect: 'responses', agent: agentOf('responses') },
    'an agent of messages, translated': { model: `${url}#solver`, agent: agentOf('messages') },
    'an agent of responses, translated': { model: `${url}#solver`, agent: agentOf('responses') },
  }
  for (const [door, options] of Object.entries(doors)) expect((await evaluate(options)).report, door).toEqual(first.report)
  const keys = new Set(provider.calls.map(({ headers }) => headers.authorization ?? headers['x-api-key']))
  expect([...keys]).toEqual([undefined, 'Bearer key-of-openai', 'key-of-anthropic'])
  // Nothing is translated to Responses.
  await expect(evaluate({ model: `${url}#solver`, dialect: 'responses' })).rejects.toThrow(/speaks responses only; ask for it in that API/)
})
