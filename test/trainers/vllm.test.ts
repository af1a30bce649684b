// @module-tag quick
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ChatModel, loadChatModel } from '@aworld-train/chat'
import type { GenerateRequest, GenerateResult, ModelDescription, ReportedCompletion } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engine-local'
import {
  createVllmChatEngine,
  createVllmFleet,
  createVllmTokenEngine,
  createWeightUpdater,
  type Publication,
  type RemoteTokenEngine,
  readVllmAnswer,
} from '@aworld-train/engine-remote'
import { createGateway, type ModelRoute } from '@aworld-train/gateway'
import type { Constraint, Sampling, Trajectory, Turn } from '@aworld-train/protocol'
import { describeTokenEngine } from '@aworld-train/testing'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startVllm, type VllmServer } from './vllm/start-vllm.ts'
import { answers, clock, contextLength, makeBlankModel, makeOtherWeights, makeToolModel } from './vllm/tool-model.ts'
import { writeAdapter } from './vllm/write-adapter.ts'

const tolerance = 1e-3
const signal = new AbortController().signal

let directory: string
let server: VllmServer
let model: ModelDescription
let chat: ChatModel
let version = 0
const folder = (name: string) => join(directory, name)

const sampling = (overrides: Partial<Sampling> = {}): Sampling => ({
  temperature: 1,
  topP: 1,
  topK: 0,
  maxTokens: 24,
  stop: [],
  seed: 0,
  ...overrides,
})
/** A temperature at which the model says what it was taught: at 1 it says something else once in 70 calls. */
const sure = 0.4
const callOf = (overrides: Partial<GenerateRequest> = {}): GenerateRequest => ({
  promptTokenIds: prompt('sum'),
  sampling: sampling(),
  random: { seed: 1, task: 'vllm', sample: 0, turn: 0 },
  affinity: 'vllm.0',
  ...overrides,
})
const prompt = (text: string): Int32Array =>
  chat.createConversation().prepare({ messages: [{ role: 'user', content: text }], tools: [] }).promptTokenIds

/** Logprobs of the embedded engine over the weights of a folder. */
async function recompute(weights: string, rows: readonly Int32Array[], temperature: number): Promise<readonly Float32Array[]> {
  const local = await createLocalEngine({ model: weights, simd: 'plain', threads: 2 })
  try {
    return await local.learner.logprobs(rows, temperature)
  } finally {
    await local.close()
  }
}

async function largestDifference(weights: string, { promptTokenIds, completionTokenIds, rolloutLogprobs }: Tokens, temperature = 1) {
  const [row] = await recompute(weights, [Int32Array.of(...promptTokenIds, ...completionTokenIds)], temperature)
  return Math.max(...rolloutLogprobs.map((logprob, index) => Math.abs(logprob - row![promptTokenIds.length + index]!)))
}
type Tokens = Pick<ReportedCompletion, 'promptTokenIds' | 'completionTokenIds' | 'rolloutLogprobs'>

/** Publishes a folder through an engine's fleet; what the servers sample then is compared with `checkedAgainst`. */
async function publish(engine: RemoteTokenEngine, name: string, options: Partial<Publication> & { checkedAgainst?: string } = {}) {
  const { checkedAgainst = name, ...publication } = options
  const updater = createWeightUpdater({
    fleet: engine.fleet,
    check: {
      engine,
      prompts: [prompt('time'), prompt('sum'), prompt('a word never seen')],
      tolerance,
      recompute: (rows, temperature) => recompute(folder(checkedAgainst), rows, temperature),
    },
  })
  version = Math.max(version, engine.weightVersion()) + 1
  return updater.publish({ version, directory: folder(name), ...publication }, signal)
}

const tokenEngine = (route: 'generate' | 'completions' = 'generate') =>
  createVllmTokenEngine({ replicas: [server.url], model, served: 'tiny', route, maxInFlight: 64 })

async function metric(name: string): Promise<number> {
  const { body } = await request(`${server.url}/metrics`)
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(await body.text())?.[1])
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'aworld-train-vllm-'))
  await makeBlankModel(folder('blank'))
  model = { ...(await makeToolModel(folder('base'))), name: 'tiny' }
  chat = await loadChatModel({ directory: model.directory, stopTokenIds: model.stopTokenIds })
  await makeOtherWeights(folder('base'), folder('first'), 'the time is a sum of words. ')
  await makeOtherWeights(folder('base'), folder('second'), 'four and five; five and four. ')
  await writeAdapter(folder('base'), folder('adapter'), folder('merged'))
  server = await startVllm({ model: folder('base'), served: 'tiny', contextLength, readyWithinMs: 400_000 })
  // The first call compiles for some seconds.
  const engine = await tokenEngine()
  await publish(engine, 'base')
  await engine.close()
})

afterAll(async () => {
  await server?.stop()
  await rm(directory, { recursive: true, force: true })
})

for (const route of ['generate', 'completions'] as const) {
  describe(`route ${route}`, () => {
    // Its options are read before the model is made: ids of bytes are the bytes.
    describeTokenEngine({
      name: `vLLM, ${route}`,
      create: () => tokenEngine(route),
      promptTokenIds: Int32Array.from(Buffer.from('sum of four and five')),
      draws: true,
      publish: async (engine) => void (await publish(engine as RemoteTokenEngine, version % 2 === 0 ? 'first' : 'base')),
    })
  })
}

describe('token engine over vLLM', () => {
  test('samples the logprobs of the weights, at any temperature', async () => {
    const engine = await tokenEngine()
    await publish(engine, 'base')
    for (const temperature of [1, 0.6, 0]) {
      const { tokenIds, logprobs, finishReason } = await engine.generate(callOf({ sampling: sampling({ temperature }) }), signal)
      expect(chat.decode(tokenIds)).toBe(`${answers.sum}<|im_end|>`)
      expect(finishReason).toEqual({ unified: 'stop', raw: 'stop' })
      const tokens = { promptTokenIds: prompt('sum'), completionTokenIds: tokenIds, rolloutLogprobs: logprobs }
      expect(await largestDifference(folder('base'), tokens, temperature || 1)).toBeLessThan(tolerance)
    }
    await engine.close()
  })

  test('stops behind a stop string and keeps its ids', async () => {
    const engine = await tokenEngine()
    const { tokenIds, finishReason } = await engine.generate(callOf({ sampling: sampling({ stop: [' 4,'] }) }), signal)
    expect(chat.decode(tokenIds)).toBe('It is 4,')
    expect(finishReason.unified).toBe('stop')
    await engine.close()
  })

  describe.each(['generate', 'completions'] as const)('holds an answer to its form, route %s', (route) => {
    const schema = '{"type":"object","properties":{"sum":{"enum":[4,5]}},"required":["sum"],"additionalProperties":false}'
    test.each<[Constraint, RegExp]>([
      [{ kind: 'json-schema', schema }, /^\{\s*"sum"\s*:\s*[45]\s*\}$/],
      [{ kind: 'json-object' }, /^\{/],
      [{ kind: 'regex', pattern: 'It is [6-9]' }, /^It is [6-9]$/],
      [{ kind: 'choice', choices: ['six (6)', 'seven [7]'] }, /^(six \(6\)|seven \[7\])$/],
      [{ kind: 'grammar', grammar: 'root ::= "a" ("b" | "c") "d"' }, /^a[bc]d$/],
    ])('%j', async (constraint, form) => {
      const engine = await tokenEngine(route)
      await publish(engine, 'base')
      const request = callOf({ sampling: sampling({ temperature: sure, maxTokens: 400 }), constraint })
      const { tokenIds, logprobs, finishReason } = await engine.generate(request, signal)
      const text = chat.decode(tokenIds).replace('<|im_end|>', '')
      expect(text).toMatch(form)
      if (constraint.kind !== 'json-object') expect(finishReason.unified).toBe('stop')
      // What is left of a distribution is not the distribution.
      const tokens = { promptTokenIds: prompt('sum'), completionTokenIds: tokenIds, rolloutLogprobs: logprobs }
      expect(await largestDifference(folder('base'), tokens, sure)).toBeGreaterThan(tolerance)
      await engine.close()
    })

    test('and says what is wrong with a form that is none', async () => {
      const engine = await tokenEngine(route)
      const call = engine.generate(callOf({ constraint: { kind: 'json-schema', schema: '{"type":"nothing"}' } }), signal)
      await expect(call).rejects.toMatchObject({ code: 'GATEWAY_BAD_REQUEST' })
      await engine.close()
    })
  })

  test('frees the slot of a call that is aborted', async () => {
    const engine = await tokenEngine()
    const controller = new AbortController()
    const promptTokenIds = Int32Array.from(Buffer.from('once upon a time'))
    const long = callOf({ promptTokenIds, sampling: sampling({ maxTokens: 900, temperature: 2 }) })
    const call = engine.generate({ ...long, onTokens: () => controller.abort(new Error('gone')) }, controller.signal)
    await expect(call).rejects.toThrow('gone')
    const until = Date.now() + 3000
    while ((await metric('vllm:num_requests_running')) > 0 && Date.now() < until) await sleep(50)
    expect(await metric('vllm:num_requests_running')).toBe(0)
    expect(engine.fleet.counts().inFlight).toBe(0)
    await engine.close()
  })

  test('says what is wrong with an id that the model has not', async () => {
    const engine = await tokenEngine()
    const call = engine.generate(callOf({ promptTokenIds: Int32Array.of(1, 99_999) }), signal)
    await expect(call).rejects.toMatchObject({ code: 'GATEWAY_BAD_REQUEST', message: expect.stringContaining('99999') })
    await engine.close()
  })
})

describe('chat engine over vLLM', () => {
  async function send(text: string, { stream = false, tools = false, maxTokens = 80 } = {}) {
    const engine = await createVllmChatEngine({ replicas: [server.url], model: { name: 'tiny', contextLength } })
    const chunks: Buffer[] = []
    let type = ''
    const body = {
      model: 'policy',
      stream,
      messages: [{ role: 'user', content: text }],
      seed: 4,
      temperature: 3,
      ...(tools && { tools: [{ type: 'function', function: clock }] }),
    }
    const spliced = `${JSON.stringify(body).slice(0, -1)},${engine.splice(sampling({ maxTokens, temperature: sure }))}}`
    try {
      const outcome = await engine.send(
        { body: Buffer.from(spliced), stream, affinity: 'chat.0' },
        {
          onHead: (head) => {
            type = head.contentType
          },
          onData(chunk) {
            chunks.push(chunk)
            return true
          },
        },
        signal,
      )
      return { outcome, answer: readVllmAnswer(Buffer.concat(chunks), stream, type) }
    } finally {
      await engine.close()
    }
  }

  test.each([false, true])('reports ids and logprobs of a tool call, stream %s', async (stream) => {
    const { outcome, answer } = await send('time', { stream, tools: true })
    const prepared = chat.createConversation().prepare({ messages: [{ role: 'user', content: 'time' }], tools: [clock] })
    expect(Array.from(answer.promptTokenIds)).toEqual(Array.from(prepared.promptTokenIds))
    expect(chat.decode(answer.completionTokenIds)).toBe(`${answers.time}<|im_end|>`)
    expect(answer.message.toolCalls).toEqual([{ id: expect.stringMatching(/./), name: 'clock', arguments: '{"zone": "UTC"}' }])
    expect(answer.finishReason).toEqual({ unified: 'tool-calls', raw: 'tool_calls' })
    expect(outcome).toEqual({ replica: server.url, weightVersions: [expect.any(Number)] })
    expect(await largestDifference(folder('base'), answer, sure)).toBeLessThan(tolerance)
  })

  test.each([false, true])('reports ids and logprobs of a text, stream %s', async (stream) => {
    const { answer } = await send('sum', { stream })
    expect(answer.message).toEqual({ role: 'assistant', content: answers.sum })
    expect(answer.usage).toEqual({ promptTokens: 22, completionTokens: answer.completionTokenIds.length, cachedTokens: 0 })
    expect(await largestDifference(folder('base'), answer, sure)).toBeLessThan(tolerance)
  })

  test.each([false, true])('refuses a conversation that leaves no room, stream %s', async (stream) => {
    await expect(send('word '.repeat(900), { stream })).rejects.toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
  })
})

describe('a gateway over vLLM', () => {
  interface Reply {
    readonly content: string | null
    readonly tool_calls?: readonly {
      readonly index?: number
      readonly id: string
      readonly function: { readonly name: string; readonly arguments: string }
    }[]
  }

  /** What an agent hears: the message of an answer, or of a stream put together. */
  async function ask(
    endpoint: { readonly baseUrl: string; readonly apiKey: string },
    messages: readonly unknown[],
    stream: boolean,
  ): Promise<Reply> {
    const answer = await request(`${endpoint.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${endpoint.apiKey}` },
      body: JSON.stringify({ model: 'policy', messages, stream, tools: [{ type: 'function', function: clock }] }),
    })
    const text = await answer.body.text()
    expect(`${answer.statusCode} ${text}`).toMatch(/^200 /)
    if (!stream) return JSON.parse(text).choices[0].message
    const calls: { id: string; function: { name: string; arguments: string } }[] = []
    let content = ''
    for (const [, data = ''] of text.matchAll(/^data: (\{.*)$/gm)) {
      const { delta } = JSON.parse(data).choices[0] ?? {}
      content += delta?.content ?? ''
      for (const { index, id, function: piece } of delta?.tool_calls ?? []) {
        calls[index] ??= { id: '', function: { name: '', arguments: '' } }
        const call = calls[index]!
        call.id ||= id ?? ''
        call.function.name += piece?.name ?? ''
        call.function.arguments += piece?.arguments ?? ''
      }
    }
    return { content, ...(calls.length > 0 && { tool_calls: calls.map((call) => ({ ...call, type: 'function' })) }) }
  }

  test.each([
    ['token', false],
    ['token', true],
    ['chat', false],
    ['chat', true],
  ] as const)('records two tool turns with the logprobs of the weights: %s engine, stream %s', async (kind, stream) => {
    const fleet = await createVllmFleet({ replicas: [server.url] })
    const engine = await createVllmTokenEngine({ fleet, model, served: 'tiny' })
    await publish(engine, 'base')
    const route: ModelRoute =
      kind === 'token'
        ? { kind, engine, chat }
        : { kind, engine: await createVllmChatEngine({ fleet, model: { name: 'tiny', contextLength }, served: 'tiny' }) }
    const gateway = await createGateway({ models: { policy: route }, seed: 1 })
    const agents = [{ name: 'agent', trainable: true }]
    const session = gateway.open({
      rollout: 'r',
      attempt: 0,
      taskId: 't',
      sample: 0,
      policy: 'policy',
      sampling: sampling({ maxTokens: 80, temperature: sure }),
      agents,
    })
    const endpoint = session.endpoint('agent')
    const messages: unknown[] = [{ role: 'user', content: 'time' }]
    const first = await ask(endpoint, messages, stream)
    expect(first.tool_calls?.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([['clock', { zone: 'UTC' }]])
    messages.push({ role: 'assistant', ...first }, { role: 'tool', tool_call_id: first.tool_calls![0]!.id, content: '12:00' })
    await ask(endpoint, messages, stream)
    const [{ turns }] = (await session.close()) as [Trajectory]
    expect(turns.map(({ parent, branchReasons, delivered }) => ({ parent, branchReasons, delivered }))).toEqual([
      { parent: null, branchReasons: ['root'], delivered: 'delivered' },
      { parent: 0, branchReasons: [], delivered: 'delivered' },
    ])
    expect(turns.map(({ capture }) => capture)).toEqual(
      Array(2).fill({ tokens: kind === 'token' ? 'token-in' : 'engine-reported', logprobs: 'temperature' }),
    )
    const [before, after] = turns as [Turn, Turn]
    const conversation = [...before.promptTokenIds, ...before.completionTokenIds]
    expect(Array.from(after.promptTokenIds.subarray(0, conversation.length))).toEqual(conversation)
    for (const turn of turns) {
      expect(turn.weightVersions).toEqual([{ fromToken: 0, version }])
      expect(await largestDifference(folder('base'), turn, sure)).toBeLessThan(tolerance)
    }
    expect(gateway.counts().inFlight + fleet.counts().inFlight).toBe(0)
    await gateway.close()
    await fleet.close()
  })

  test('keeps what had come of a stream whose client left, with the logprobs of the weights', async () => {
    const fleet = await createVllmFleet({ replicas: [server.url] })
    onTestFinished(() => fleet.close())
    const tokens = await createVllmTokenEngine({ fleet, model, served: 'tiny' })
    await publish(tokens, 'base')
    const engine = await createVllmChatEngine({ fleet, model: { name: 'tiny', contextLength }, served: 'tiny' })
    const gateway = await createGateway({ models: { policy: { kind: 'chat', engine } }, seed: 1 })
    onTestFinished(() => gateway.close())

    /** A stream that its client leaves, and its turn; `null` where the model, which is drawn at random, had ended by itself before. */
    async function leave(rollout: string): Promise<{ seen: string; turn: Turn } | null> {
      const session = gateway.open({
        rollout,
        attempt: 0,
        taskId: 't',
        sample: 0,
        policy: 'policy',
        sampling: sampling({ maxTokens: 900, temperature: 2 }),
        agents: [{ name: 'agent', trainable: true }],
      })
      const client = new AbortController()
      const { body } = await request(`${session.endpoint('agent').baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'once upon a time' }], stream: true, x_unknown: { a: 1.5 } }),
        signal: client.signal,
      })
      let seen = ''
      try {
        for await (const chunk of body) {
          seen += chunk
          if (seen.split('"token_ids":[').length > 12) client.abort(new Error('left'))
        }
      } catch (error) {
        expect(error).toMatchObject({ message: 'left' })
      }
      const until = Date.now() + 3000
      while ((await metric('vllm:num_requests_running')) + gateway.counts().inFlight > 0 && Date.now() < until) await sleep(50)
      expect(await metric('vllm:num_requests_running')).toBe(0)
      const [{ turns }] = (await session.close()) as [Trajectory]
      const [turn, ...others] = turns
      expect([turn === undefined, others.length]).toEqual([false, 0])
      return turn!.finishReason.unified === 'stop' ? null : { seen, turn: turn! }
    }

    let left: Awaited<ReturnType<typeof leave>> = null
    for (let attempt = 0; !left && attempt < 20; attempt++) left = await leave(`left-${attempt}`)
    const { seen, turn } = left!
    expect(turn).toMatchObject({
      delivered: 'abandoned',
      finishReason: { unified: 'aborted', raw: 'client-closed' },
      unusedFields: { x_unknown: '{"a":1.5}' },
    })
    const ids = [...seen.slice(0, seen.lastIndexOf('\n')).matchAll(/"token_ids":\[([\d,]+)\]/g)].flatMap(([, list = '']) =>
      list.split(',').map(Number),
    )
    expect(ids.length).toBeGreaterThan(5)
    expect(Array.from(turn.completionTokenIds.subarray(0, ids.length))).toEqual(ids)
    expect(turn.completionTokenIds.length).toBeLessThan(900)
    expect(await largestDifference(folder('base'), turn, 2)).toBeLessThan(tolerance)
  })

  test('answers in the form that response_format asks for, and records that it was held to it', async () => {
    const engine = await tokenEngine()
    await publish(engine, 'base')
    const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat } }, seed: 1 })
    const session = gateway.open({
      rollout: 'r',
      attempt: 0,
      taskId: 't',
      sample: 0,
      policy: 'policy',
      sampling: sampling({ maxTokens: 200, temperature: sure }),
      agents: [{ name: 'agent', trainable: true }],
    })
    const { baseUrl, apiKey } = session.endpoint('agent')
    const schema = { type: 'object', properties: { sum: { enum: [4, 5] } }, required: ['sum'], additionalProperties: false }
    const ask = async (fields: object) => {
      const { statusCode, body } = await request(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: 'sum' }], ...fields }),
      })
      return { statusCode, json: (await body.json()) as { choices?: { message: { content: string } }[]; error?: { message: string } } }
    }
    const answer = await ask({ response_format: { type: 'json_schema', json_schema: { name: 'sum', schema } } })
    expect(answer.statusCode).toBe(200)
    expect([4, 5]).toContain(JSON.parse(answer.json.choices![0]!.message.content).sum)
    const wrong = await ask({ response_format: { type: 'json_schema', json_schema: { name: 'sum', schema: { type: 'nothing' } } } })
    expect(wrong.statusCode).toBe(400)
    const [{ turns }] = (await session.close()) as [Trajectory]
    expect(turns).toMatchObject([
      { capture: { tokens: 'token-in', logprobs: 'processed' }, constraint: { kind: 'json-schema', schema: JSON.stringify(schema) } },
    ])
    await gateway.close()
    await engine.close()
  })
})

describe('the corpus of vLLM', () => {
  interface Recording {
    readonly name: string
    readonly method: 'GET' | 'POST'
    readonly path: string
    readonly request?: unknown
    readonly status: number
    readonly body: string
  }
  const file = new URL('../../packages/engine-remote/corpus/vllm-0.32.json', import.meta.url)
  const { recordings } = JSON.parse(readFileSync(file, 'utf8')) as { recordings: readonly Recording[] }

  /** Names of the members of a JSON text or of each event of a stream, and the kinds of their values. */
  const shape = (body: string): string => {
    const kinds = new Set<string>()
    const visit = (value: unknown, path: string): void => {
      if (Array.isArray(value)) for (const each of value) visit(each, `${path}[]`)
      else if (typeof value === 'object' && value !== null) for (const [name, each] of Object.entries(value)) visit(each, `${path}.${name}`)
      else kinds.add(`${path} ${value === null ? 'null' : typeof value}`)
    }
    const events = [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data)
    for (const text of events.length > 0 ? events : [body]) visit(JSON.parse(text), '')
    return [...kinds].sort().join('\n')
  }

  const stable = recordings.filter(
    ({ request: sent, path, status }) => sent !== undefined && status < 500 && /^\/(v1|inference|tokenize)/.test(path),
  )
  test.each(stable.map(({ name, ...rest }) => [name, rest] as const))('has the shapes that it answers now: %s', async (_name, recorded) => {
    const answer = await request(server.url + recorded.path, {
      method: recorded.method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(recorded.request),
    })
    expect(answer.statusCode).toBe(recorded.status)
    expect(shape(await answer.body.text())).toBe(shape(recorded.body))
  })
})

describe('weight updates of vLLM', () => {
  test('reach the sampler step by step, and only those that were published', async () => {
    const engine = await tokenEngine()
    for (const name of ['first', 'second', 'base', 'second']) {
      const { replicas } = await publish(engine, name)
      expect(replicas).toEqual([{ server: server.url, error: null, difference: expect.any(Number) }])
      expect(replicas[0]!.difference).toBeLessThan(tolerance)
      const { weightVersions } = await engine.generate(callOf(), signal)
      expect(weightVersions).toEqual([{ fromToken: 0, version }])
    }
    await engine.close()
  })

  test('are caught where the server samples other weights than were published', async () => {
    const engine = await tokenEngine()
    await expect(publish(engine, 'first', { checkedAgainst: 'second' })).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await expect(engine.generate(callOf(), signal)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await publish(engine, 'base')
    await expect(engine.generate(callOf(), signal)).resolves.toMatchObject({ finishReason: { unified: 'stop' } })
    await engine.close()
  })

  test('are refused where the folder is missing, and the server lives', async () => {
    const engine = await tokenEngine()
    const error = { code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('is not a folder on this machine') }
    await expect(publish(engine, 'missing', { checkedAgainst: 'base' })).rejects.toMatchObject(error)
    const { tokenIds } = await engine.generate(callOf(), signal)
    expect(chat.decode(tokenIds)).toBe(`${answers.sum}<|im_end|>`)
    await engine.close()
  })

  test.each(['generate', 'completions'] as const)('that meet a call kept in flight show in its versions, route %s', async (route) => {
    const engine = await tokenEngine(route)
    const updater = createWeightUpdater({ fleet: engine.fleet, inFlight: 'keep' })
    const publishKeeping = () => updater.publish({ version: ++version, directory: folder('first') }, signal)
    // On a loaded machine a completion may be over before its first token arrives.
    let met: GenerateResult[] = []
    let before = 0
    for (let attempt = 0; attempt < 8 && met.length === 0; attempt++) {
      await publish(engine, 'blank')
      before = version
      let update: Promise<unknown> | null = null
      const calls = Array.from({ length: 16 }, (_, turn) =>
        engine.generate(
          callOf({
            promptTokenIds: Int32Array.from(Buffer.from('once upon a time')),
            sampling: sampling({ maxTokens: 900, temperature: 2 }),
            random: { seed: attempt, task: 'kept', sample: 0, turn },
            onTokens: () => {
              update ??= publishKeeping()
            },
          }),
          signal,
        ),
      )
      const results = await Promise.all(calls)
      await update
      met = results.filter(({ weightVersions, mixedVersions }) => weightVersions.length > 1 || mixedVersions !== undefined)
    }
    expect(met.length).toBeGreaterThan(0)
    for (const { weightVersions, mixedVersions, tokenIds } of met) {
      const [first, second, ...more] = weightVersions
      expect(first).toEqual({ fromToken: 0, version: before })
      expect(more).toEqual([])
      if (route === 'generate') {
        expect(second).toEqual({ fromToken: expect.any(Number), version: before + 1 })
        expect(second!.fromToken).toBeLessThan(tokenIds.length)
        expect(mixedVersions).toBeUndefined()
      } else {
        expect(second).toBeUndefined()
        expect(mixedVersions).toEqual({ lowest: before, highest: before + 1 })
      }
    }
    await engine.close()
  })

  test('of an adapter are sampled under its name, beside the base weights', async () => {
    const fleet = await createVllmFleet({ replicas: [server.url] })
    const engine = await createVllmTokenEngine({ fleet, model, served: 'tiny' })
    await publish(engine, 'base')
    const report = await publish(engine, 'adapter', { policy: 'team/helper', checkedAgainst: 'merged' })
    expect(report.replicas[0]!.difference).toBeLessThan(tolerance)
    const helper = await engine.generate(callOf({ policy: 'team/helper' }), signal)
    expect(helper.weightVersions).toEqual([{ fromToken: 0, version }])
    const base = await engine.generate(callOf(), signal)
    expect(base.weightVersions).toEqual([{ fromToken: 0, version: version - 1 }])
    const tokens = { promptTokenIds: prompt('sum'), completionTokenIds: base.tokenIds, rolloutLogprobs: base.logprobs }
    expect(await largestDifference(folder('base'), tokens)).toBeLessThan(tolerance)
    await fleet.close()
  })

  // Last: what it leaves behind is repaired by the one after it.
  test("by vLLM's own reload on CPU serve wrong logprobs, which is found out", async () => {
    const fleet = await createVllmFleet({ replicas: [server.url], loadMethod: 'reload_weights' })
    const engine = await createVllmTokenEngine({ fleet, model, served: 'tiny' })
    await expect(publish(engine, 'second')).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await fleet.close()
    const repaired = await tokenEngine()
    await publish(repaired, 'second')
    await repaired.close()
  })
})
