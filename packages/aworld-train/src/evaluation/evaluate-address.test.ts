import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentFunctionContext } from '@aworld-train/agent'
import type { AgentTask, RewardInput, ScoringContext } from '@aworld-train/core'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type RunEvaluationOptions, rescoreRun, runEvaluation } from './run-evaluation.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-evaluation-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))

interface Provider extends AsyncDisposable {
  readonly url: string
  /** The questions in the order in which they came. */
  readonly questions: readonly string[]
}

/** A Chat Completions server: `answer` gives the text to a question that comes for the n-th time, or an HTTP status. */
async function startProvider(answer: (question: string, time: number) => string | number): Promise<Provider> {
  const questions: string[] = []
  const server = createServer(async (request, response) => {
    if (request.url?.endsWith('/models')) return void response.writeHead(404).end()
    let body = ''
    for await (const chunk of request) body += chunk
    const { model, messages } = JSON.parse(body) as { model: string; messages: { content: string }[] }
    const question = messages.at(-1)!.content
    const time = questions.filter((each) => each === question).length
    questions.push(question)
    reply(response, model, answer(question, time))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    questions,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function reply(response: ServerResponse, model: string, text: string | number): void {
  const failed = typeof text === 'number'
  response.writeHead(failed ? text : 200, { 'content-type': 'application/json' })
  if (failed) return void response.end(JSON.stringify({ error: { message: 'It is broken.' } }))
  const message = { role: 'assistant', content: text }
  const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100, prompt_tokens_details: { cached_tokens: 600 } }
  const choices = [{ index: 0, finish_reason: 'stop', message }]
  response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: `${model}-2026-08-01`, choices, usage }))
}

async function ask(
  task: Pick<AgentTask, 'input'>,
  { baseUrl, apiKey }: Pick<AgentFunctionContext, 'baseUrl' | 'apiKey'>,
  model = 'any',
): Promise<string> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.input }] })
  const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body })
  const { choices, error } = (await response.json()) as { choices?: { message: { content: string } }[]; error?: { message: string } }
  if (error) throw new Error(error.message)
  return choices![0]!.message.content
}

const tasks = ['gold', 'tin', 'iron', 'lead'].map((prompt, index) => ({
  id: prompt,
  prompt,
  answer: prompt.slice(0, 2),
  size: index < 2 ? 'small' : 'big',
}))

const evaluate = ({ url }: Pick<Provider, 'url'>, options: Partial<RunEvaluationOptions> = {}, signal?: AbortSignal) =>
  runEvaluation(
    {
      agent: (task, context) => ask(task, context),
      dataset: tasks,
      rewardFunc: (_source, answer, truth) => Number(answer.trim().toLowerCase() === truth),
      model: `${url}#solver`,
      price: { input: 1, output: 10, cachedInput: 0.5 },
      samples: 2,
      kindKey: 'size',
      runPath: join(folder, 'runs'),
      onEvent: () => {},
      ...options,
    },
    signal,
  )

it('reports reward, pass@k, majority, kinds, cost and the name that answered', async () => {
  await using provider = await startProvider((question, time) =>
    question === 'lead' || (question === 'tin' && time === 1) ? '?' : question.slice(0, 2),
  )
  const report = await evaluate(provider)
  expect(report).toMatchObject({
    model: `${provider.url}#solver`,
    answeredAs: ['solver-2026-08-01'],
    status: 'finished',
    tasks: 4,
    rollouts: 8,
    failed: 0,
    scored: { tasks: 4, rollouts: 8 },
    reward: 0.625,
    bounds: null,
    passAtK: { 1: { value: 0.625, tasks: 4 }, 2: { value: 0.75, tasks: 4 } },
    majority: { value: 0.625 },
    mostFrequentAnswer: 0.25,
    byKind: { small: { value: 0.75, tasks: 2, rollouts: 4 }, big: { value: 0.5, tasks: 2 } },
    usage: { promptTokens: 8000, completionTokens: 800, cachedTokens: 4800 },
    perRollout: { turns: 1, toolCalls: 0 },
    unseen: 0,
  })
  expect(report.cost).toBeCloseTo((3200 + 0.5 * 4800 + 10 * 800) / 1e6)
  expect(report.results.map(({ taskId, sample, reward, cost }) => [taskId, sample, reward, cost])).toContainEqual(['gold', 0, 1, 0.0017])
})

it('leaves failures out of the mean and says what they could change; what failed runs once more', async () => {
  await using provider = await startProvider((question, time) => (question === 'iron' && time < 2 ? 500 : question.slice(0, 2)))
  const first = await evaluate(provider)
  expect(first).toMatchObject({ reward: 1, failed: 2, bounds: [0.75, 1], scored: { tasks: 3, rollouts: 6 } })
  expect(first.failures).toMatchObject([{ code: 'FROZEN_MODEL_FAILED', count: 2 }])
  const again = await evaluate(provider, { resume: first.path, againFailed: true })
  expect(again).toMatchObject({ path: first.path, reward: 1, failed: 0, bounds: null, scored: { tasks: 4, rollouts: 8 } })
  expect(provider.questions).toHaveLength(10)
  expect(provider.questions.slice(8)).toEqual(['iron', 'iron'])
})

it('goes on where it was stopped, and asks nothing that has an answer', async () => {
  const stop = new AbortController()
  await using provider = await startProvider((question) => {
    if (provider.questions.length === 5) stop.abort(new Error('stopped'))
    return question.slice(0, 2)
  })
  await expect(evaluate(provider, { concurrency: 1 }, stop.signal)).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  const [name] = readdirSync(join(folder, 'runs'))
  const report = await evaluate(provider, { concurrency: 1 })
  expect(report).toMatchObject({ path: join(folder, 'runs', name!), reward: 1, rollouts: 8, failed: 0 })
  // The fifth call was under way.
  expect(provider.questions.length).toBeLessThanOrEqual(9)
  expect(readdirSync(join(folder, 'runs'))).toEqual([name])
})

it('starts no rollout beyond its budget, and goes on with a larger one', async () => {
  await using provider = await startProvider((question) => question.slice(0, 2))
  const report = await evaluate(provider, { concurrency: 1, budget: 0.006 })
  // A rollout costs 0.0017.
  expect(report).toMatchObject({ status: 'stopped', notStarted: 5, failed: 0, scored: { rollouts: 3 } })
  expect(report.results.filter(({ stopReason }) => stopReason === null)).toHaveLength(5)
  const rest = await evaluate(provider, { concurrency: 1, budget: 1 })
  expect(rest).toMatchObject({ path: report.path, status: 'finished', notStarted: 0, reward: 1 })
  expect(provider.questions).toHaveLength(8)
})

it('is compared task by task, and scored again without asking anybody', async () => {
  await using provider = await startProvider((question, time) => (question === 'gold' && time > 1 ? '?' : question.slice(0, 2)))
  const before = await evaluate(provider)
  const after = await evaluate(provider, { compare: 'last', fresh: true })
  expect(after.comparison).toMatchObject({
    path: before.path,
    difference: { value: -0.25, tasks: 4 },
    better: 0,
    worse: 1,
    equal: 3,
    worst: { taskId: 'gold', from: 1, to: 0 },
    notes: [],
  })
  const calls = provider.questions.length
  await provider[Symbol.asyncDispose]()
  const stricter = await rescoreRun({
    agent: (task, context) => ask(task, context),
    dataset: tasks,
    rewardFunc: (_source, answer) => Number(answer === 'ti'),
    model: `${provider.url}#solver`,
    samples: 2,
    runPath: join(folder, 'runs'),
    onEvent: () => {},
    from: after.path,
  })
  expect(stricter).toMatchObject({ reward: 0.25, comparison: { path: after.path, difference: { value: -0.5 } } })
  expect(stricter.comparison?.notes.join()).toContain('the reward')
  expect(provider.questions).toHaveLength(calls)
})

it('refuses a comparison that cannot be made before anything runs', async () => {
  await using provider = await startProvider((question) => question.slice(0, 2))
  await expect(evaluate(provider, { compare: 'last' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('no finished evaluation'),
  })
  await evaluate(provider)
  const other = [{ id: 'a', prompt: 'zinc', answer: 'zi' }]
  await expect(evaluate(provider, { compare: 'last', dataset: other, kindKey: undefined })).rejects.toThrow(/no scored task in common/)
  await expect(evaluate(provider, { compare: join(folder, 'none') })).rejects.toThrow(/There is no run/)
  expect(provider.questions).toHaveLength(8)
})

it('scores an agent that asks its model by itself, and says what is not seen', async () => {
  await using provider = await startProvider((question) => question.slice(0, 2))
  const agent = (task: AgentTask) => ask(task, { baseUrl: provider.url, apiKey: 'own' })
  const report = await evaluate(provider, { agent, model: 'none', price: undefined })
  expect(report).toMatchObject({ model: null, reward: 1, unseen: 8, cost: null, usage: { promptTokens: 0 } })
})

it('collects answers where there is no reward', async () => {
  await using provider = await startProvider((question) => question.slice(0, 2))
  const report = await evaluate(provider, { rewardFunc: undefined })
  expect(report).toMatchObject({ reward: null, interval: null, failed: 0, scored: { rollouts: 0 }, passAtK: {}, majority: null })
  expect(report.results.map(({ answer }) => answer)).toContain('go')
})

it('records the answers of a model once and replays them without key and server', async () => {
  const cassette = join(folder, 'eval.jsonl')
  const address = async (): Promise<unknown> => {
    await using provider = await startProvider((question) => question.slice(0, 2))
    const { reward, cost, results } = await evaluate(provider, {
      cassette,
      fresh: true,
      model: `${provider.url}#solver`,
      apiKeyEnv: 'EVALUATION_TEST_KEY',
    })
    expect(provider.questions).toHaveLength(8)
    return { reward, cost, rewards: results.map((row) => row.reward) }
  }
  process.env['EVALUATION_TEST_KEY'] = 'very-secret'
  const recorded = await address()
  delete process.env['EVALUATION_TEST_KEY']
  expect(readFileSync(cassette, 'utf8')).not.toContain('very-secret')
  const { reward, cost, results } = await evaluate(
    { url: 'http://127.0.0.1:9/v1' },
    { cassette, fresh: true, apiKeyEnv: 'EVALUATION_TEST_KEY' },
  )
  expect({ reward, cost, rewards: results.map((row) => row.reward) }).toEqual(recorded)
})

it('evaluates a model of the configuration by its name, which a reward may ask too', async () => {
  await using provider = await startProvider((question) => (question.startsWith('Is') ? '1' : question.slice(0, 2)))
  const settings = { baseUrl: provider.url, model: 'large', price: { input: 1, output: 10 } }
  const report = await evaluate(provider, {
    config: { models: { solver: settings, other: settings } },
    agent: (task, { baseUrl, apiKey, model }) => ask(task, { baseUrl, apiKey }, model),
    model: 'solver',
    price: undefined,
    rewardFunc: {
      name: 'judge',
      async score({ episode }: RewardInput, { model }: ScoringContext) {
        const { baseUrl, apiKey, model: name } = model('solver')
        return { reward: Number(await ask({ input: `Is it ${episode.answer}?` }, { baseUrl, apiKey }, name)), scores: {} }
      },
      close: async () => {},
    },
  })
  expect(report).toMatchObject({ model: `${provider.url}#large`, reward: 1, perRollout: { turns: 1 }, usage: { promptTokens: 8000 } })
  expect(report.rewardCost).toBeCloseTo(report.cost!)
  await expect(evaluate(provider, { config: { models: { solver: settings } } })).rejects.toThrow(/models.solver has the name of a policy/)
})

it('goes on recording after it was stopped, and replays what was recorded then', async () => {
  const cassette = join(folder, 'eval.jsonl')
  const stop = new AbortController()
  await using provider = await startProvider((question) => {
    if (provider.questions.length === 5) stop.abort(new Error('stopped'))
    return question.slice(0, 2)
  })
  await expect(evaluate(provider, { concurrency: 1, cassette }, stop.signal)).rejects.toMatchObject({ code: 'ROLLOUT_CANCELLED' })
  expect(existsSync(cassette)).toBe(false)
  expect(await evaluate(provider, { concurrency: 1, cassette })).toMatchObject({ reward: 1, rollouts: 8, failed: 0 })
  const calls = provider.questions.length
  expect(await evaluate(provider, { concurrency: 1, cassette, fresh: true })).toMatchObject({ reward: 1, rollouts: 8, failed: 0 })
  expect(provider.questions).toHaveLength(calls)
})

it('is not the run of a rescoring of the same reward that was stopped', async () => {
  await using provider = await startProvider((question) => question.slice(0, 2))
  const rewardFunc = (_source: string, answer: string) => Number(answer === 'ti')
  const { path } = await evaluate(provider)
  const stop = AbortSignal.abort(new Error('stopped'))
  const rescoring = {
    agent: ask,
    dataset: tasks,
    rewardFunc,
    samples: 2,
    kindKey: 'size',
    runPath: join(folder, 'runs'),
    onEvent: () => {},
    from: path,
  }
  await expect(rescoreRun(rescoring, stop)).rejects.toThrow()
  const anew = await evaluate(provider, { rewardFunc })
  expect(provider.questions).toHaveLength(16)
  expect(await rescoreRun({ ...rescoring, from: anew.path })).toMatchObject({ reward: 0.25, failed: 0 })
})

it('names every problem at once and leaves nothing', async () => {
  writeFileSync(join(folder, 'tasks.jsonl'), '{"answer":1}\n')
  const options = { agent: './none.ts', dataset: './tasks.jsonl', rewardFunc: './none-either.ts', model: 'gtp-5', baseDirectory: folder }
  const error = await runEvaluation({ ...options, runPath: join(folder, 'runs') }).catch((thrown: Error) => thrown.message)
  for (const part of ['none.ts', 'no prompt', 'none-either.ts', 'gtp-5 is no model']) expect(error).toContain(part)
  expect(existsSync(join(folder, 'runs'))).toBe(false)
})

it.each([
  ['a key that is not set', { apiKeyEnv: 'NO_SUCH_KEY' }, /NO_SUCH_KEY.*not set/s],
  ['a budget without a price', { price: undefined, budget: 1 }, /needs the price/],
  [
    'a budget with a judge without a price',
    { budget: 1, config: { models: { judge: { baseUrl: 'http://a/v1', model: 'm' } } } },
    /models.judge.price/,
  ],
  ['no tasks', { dataset: [] }, /no rows|nothing to evaluate/],
  ['a task twice', { dataset: [tasks[0]!, tasks[0]!] }, /stands in row 1 already/],
  ['no model', { model: undefined }, /no model to evaluate/],
  ['a provider without a name', { model: 'openai:' }, /names no model/],
  ['a key in the address', { model: 'http://127.0.0.1:9/v1?key=secret#m' }, /would stand in the files of the run/],
  ['a price of an agent that asks by itself', { model: 'none' }, /--price has no effect with --model none/],
  ['a budget of nothing known', { model: 'none', price: undefined, budget: 1 }, /address of its own; leave --budget out/],
])('refuses %s', async (_what, options, message) => {
  await using provider = await startProvider(() => 'x')
  await expect(evaluate(provider, options)).rejects.toThrow(message)
  expect(provider.questions).toEqual([])
  expect(existsSync(join(folder, 'runs')) ? readdirSync(join(folder, 'runs')) : []).toEqual([])
})
