// @module-tag quick
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Constraint, GenerateRequest, GenerateResult } from '@aworld-train/core'
import {
  createVllmChatEngine,
  createVllmFleet,
  createVllmTokenEngine,
  createWeightUpdater,
  type RemoteTokenEngine,
  readVllmAnswer,
} from '@aworld-train/engines/remote'
import { describeTokenEngine } from '@aworld-train/testing'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openVllmBench, sampling, sure, tolerance, type VllmBench } from './vllm/bench.ts'
import { describeGatewayOverVllm } from './vllm/describe-gateway.ts'
import { answers, clock, contextLength } from './vllm/tool-model.ts'

const signal = new AbortController().signal
let vllm: VllmBench
beforeAll(async () => {
  vllm = await openVllmBench()
})
afterAll(() => vllm?.close())

const callOf = (overrides: Partial<GenerateRequest> = {}): GenerateRequest => ({
  promptTokenIds: vllm.prompt('sum'),
  sampling: sampling(),
  random: { seed: 1, task: 'vllm', sample: 0, turn: 0 },
  affinity: 'vllm.0',
  ...overrides,
})

for (const route of ['generate', 'completions'] as const) {
  describe(`route ${route}`, () => {
    // Its options are read before the model is made: ids of bytes are the bytes.
    describeTokenEngine({
      name: `vLLM, ${route}`,
      create: () => vllm.tokenEngine(route),
      promptTokenIds: Int32Array.from(Buffer.from('sum of four and five')),
      draws: true,
      publish: async (engine) => void (await vllm.publish(engine as RemoteTokenEngine, vllm.version % 2 === 0 ? 'first' : 'base')),
    })
  })
}

describe('token engine over vLLM', () => {
  test('samples the logprobs of the weights, at any temperature', async () => {
    const engine = await vllm.tokenEngine()
    await vllm.publish(engine, 'base')
    for (const temperature of [1, 0.6, 0]) {
      const { tokenIds, logprobs, finishReason } = await engine.generate(callOf({ sampling: sampling({ temperature }) }), signal)
      expect(vllm.chat.decode(tokenIds)).toBe(`${answers.sum}<|im_end|>`)
      expect(finishReason).toEqual({ unified: 'stop', raw: 'stop' })
      const tokens = { promptTokenIds: vllm.prompt('sum'), completionTokenIds: tokenIds, rolloutLogprobs: logprobs }
      expect(await vllm.largestDifference('base', tokens, temperature || 1)).toBeLessThan(tolerance)
    }
    await engine.close()
  })

  test('stops behind a stop string and keeps its ids', async () => {
    const engine = await vllm.tokenEngine()
    const { tokenIds, finishReason } = await engine.generate(callOf({ sampling: sampling({ stop: [' 4,'] }) }), signal)
    expect(vllm.chat.decode(tokenIds)).toBe('It is 4,')
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
      const engine = await vllm.tokenEngine(route)
      await vllm.publish(engine, 'base')
      const request = callOf({ sampling: sampling({ temperature: sure, maxTokens: 400 }), constraint })
      const { tokenIds, logprobs, finishReason } = await engine.generate(request, signal)
      const text = vllm.chat.decode(tokenIds).replace('<|im_end|>', '')
      expect(text).toMatch(form)
      if (constraint.kind !== 'json-object') expect(finishReason.unified).toBe('stop')
      // What is left of a distribution is not the distribution.
      const tokens = { promptTokenIds: vllm.prompt('sum'), completionTokenIds: tokenIds, rolloutLogprobs: logprobs }
      expect(await vllm.largestDifference('base', tokens, sure)).toBeGreaterThan(tolerance)
      await engine.close()
    })

    test('and says what is wrong with a form that is none', async () => {
      const engine = await vllm.tokenEngine(route)
      const call = engine.generate(callOf({ constraint: { kind: 'json-schema', schema: '{"type":"nothing"}' } }), signal)
      await expect(call).rejects.toMatchObject({ code: 'GATEWAY_BAD_REQUEST' })
      await engine.close()
    })
  })

  test('frees the slot of a call that is aborted', async () => {
    const engine = await vllm.tokenEngine()
    const controller = new AbortController()
    const promptTokenIds = Int32Array.from(Buffer.from('once upon a time'))
    const long = callOf({ promptTokenIds, sampling: sampling({ maxTokens: 900, temperature: 2 }) })
    const call = engine.generate({ ...long, onTokens: () => controller.abort(new Error('gone')) }, controller.signal)
    await expect(call).rejects.toThrow('gone')
    const until = Date.now() + 60_000
    while ((await vllm.metric('vllm:num_requests_running')) > 0 && Date.now() < until) await sleep(50)
    expect(await vllm.metric('vllm:num_requests_running')).toBe(0)
    expect(engine.fleet.counts().inFlight).toBe(0)
    await engine.close()
  })

  test('says what is wrong with an id that the model has not', async () => {
    const engine = await vllm.tokenEngine()
    const call = engine.generate(callOf({ promptTokenIds: Int32Array.of(1, 99_999) }), signal)
    await expect(call).rejects.toMatchObject({ code: 'GATEWAY_BAD_REQUEST', message: expect.stringContaining('99999') })
    await engine.close()
  })
})

describe('chat engine over vLLM', () => {
  async function send(text: string, { stream = false, tools = false, maxTokens = 80 } = {}) {
    const engine = await createVllmChatEngine({ replicas: [vllm.url], model: { name: 'tiny', contextLength } })
    const chunks: Buffer[] = []
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
          onHead() {},
          onData(chunk) {
            chunks.push(chunk)
            return true
          },
        },
        signal,
      )
      return { outcome, answer: readVllmAnswer(Buffer.concat(chunks), stream) }
    } finally {
      await engine.close()
    }
  }

  test.each([false, true])('reports ids and logprobs of a tool call, stream %s', async (stream) => {
    const { outcome, answer } = await send('time', { stream, tools: true })
    const prepared = vllm.chat.createConversation().prepare({ messages: [{ role: 'user', content: 'time' }], tools: [clock] })
    expect(Array.from(answer.promptTokenIds)).toEqual(Array.from(prepared.promptTokenIds))
    expect(vllm.chat.decode(answer.completionTokenIds)).toBe(`${answers.time}<|im_end|>`)
    expect(answer.message.toolCalls).toEqual([{ id: expect.stringMatching(/./), name: 'clock', arguments: '{"zone": "UTC"}' }])
    expect(answer.finishReason).toEqual({ unified: 'tool-calls', raw: 'tool_calls' })
    expect(outcome).toEqual({ replica: vllm.url, weightVersions: [expect.any(Number)] })
    expect(await vllm.largestDifference('base', answer, sure)).toBeLessThan(tolerance)
  })

  test.each([false, true])('reports ids and logprobs of a text, stream %s', async (stream) => {
    const { answer } = await send('sum', { stream })
    expect(answer.message).toEqual({ role: 'assistant', content: answers.sum })
    expect(answer.usage).toEqual({ promptTokens: 22, completionTokens: answer.completionTokenIds.length, cachedTokens: 0 })
    expect(await vllm.largestDifference('base', answer, sure)).toBeLessThan(tolerance)
  })

  test.each([false, true])('refuses a conversation that leaves no room, stream %s', async (stream) => {
    await expect(send('word '.repeat(900), { stream })).rejects.toMatchObject({ code: 'POLICY_CONTEXT_OVERFLOW' })
  })
})

describeGatewayOverVllm(() => vllm)

describe('the corpus of vLLM', () => {
  interface Recording {
    readonly name: string
    readonly method: 'GET' | 'POST'
    readonly path: string
    readonly request?: unknown
    readonly status: number
    readonly body: string
  }
  const file = new URL('../../packages/engines/corpus/vllm-0.32.json', import.meta.url)
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
    const answer = await request(vllm.url + recorded.path, {
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
    const engine = await vllm.tokenEngine()
    for (const name of ['first', 'second', 'base', 'second']) {
      const { replicas } = await vllm.publish(engine, name)
      expect(replicas).toEqual([{ server: vllm.url, error: null, difference: expect.any(Number) }])
      expect(replicas[0]!.difference).toBeLessThan(tolerance)
      const { weightVersions } = await engine.generate(callOf(), signal)
      expect(weightVersions).toEqual([{ fromToken: 0, version: vllm.version }])
    }
    await engine.close()
  })

  test('are caught where the server samples other weights than were published', async () => {
    const engine = await vllm.tokenEngine()
    await expect(vllm.publish(engine, 'first', { checkedAgainst: 'second' })).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await expect(engine.generate(callOf(), signal)).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await vllm.publish(engine, 'base')
    await expect(engine.generate(callOf(), signal)).resolves.toMatchObject({ finishReason: { unified: 'stop' } })
    await engine.close()
  })

  test('are refused where the folder is missing, and the server lives', async () => {
    const engine = await vllm.tokenEngine()
    const error = { code: 'POLICY_UNAVAILABLE', message: expect.stringContaining('is not a folder on this machine') }
    await expect(vllm.publish(engine, 'missing', { checkedAgainst: 'base' })).rejects.toMatchObject(error)
    const { tokenIds } = await engine.generate(callOf(), signal)
    expect(vllm.chat.decode(tokenIds)).toBe(`${answers.sum}<|im_end|>`)
    await engine.close()
  })

  test.each(['generate', 'completions'] as const)('that meet a call kept in flight show in its versions, route %s', async (route) => {
    const engine = await vllm.tokenEngine(route)
    const updater = createWeightUpdater({ fleet: engine.fleet, inFlight: 'keep' })
    const publishKeeping = () => updater.publish({ version: vllm.nextVersion(), directory: vllm.folder('first') }, signal)
    // On a loaded machine a completion may be over before its first token arrives.
    let met: GenerateResult[] = []
    let before = 0
    for (let attempt = 0; attempt < 8 && met.length === 0; attempt++) {
      await vllm.publish(engine, 'blank')
      before = vllm.version
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
    const fleet = await createVllmFleet({ replicas: [vllm.url] })
    const engine = await createVllmTokenEngine({ fleet, model: vllm.model, served: 'tiny' })
    await vllm.publish(engine, 'base')
    const report = await vllm.publish(engine, 'adapter', { policy: 'team/helper', checkedAgainst: 'merged' })
    expect(report.replicas[0]!.difference).toBeLessThan(tolerance)
    const helper = await engine.generate(callOf({ policy: 'team/helper' }), signal)
    expect(helper.weightVersions).toEqual([{ fromToken: 0, version: vllm.version }])
    const base = await engine.generate(callOf(), signal)
    expect(base.weightVersions).toEqual([{ fromToken: 0, version: vllm.version - 1 }])
    const tokens = { promptTokenIds: vllm.prompt('sum'), completionTokenIds: base.tokenIds, rolloutLogprobs: base.logprobs }
    expect(await vllm.largestDifference('base', tokens)).toBeLessThan(tolerance)
    await fleet.close()
  })

  // Last: what it leaves behind is repaired by the one after it.
  test("by vLLM's own reload on CPU serve wrong logprobs, which is found out", async () => {
    const fleet = await createVllmFleet({ replicas: [vllm.url], loadMethod: 'reload_weights' })
    const engine = await createVllmTokenEngine({ fleet, model: vllm.model, served: 'tiny' })
    await expect(vllm.publish(engine, 'second')).rejects.toMatchObject({ code: 'POLICY_STALE_WEIGHTS' })
    await fleet.close()
    const repaired = await vllm.tokenEngine()
    await vllm.publish(repaired, 'second')
    await repaired.close()
  })
})
