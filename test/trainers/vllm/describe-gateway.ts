import { setTimeout as sleep } from 'node:timers/promises'
import type { Trajectory, Turn } from '@aworld-train/core'
import { createVllmChatEngine, createVllmFleet, createVllmTokenEngine } from '@aworld-train/engines/remote'
import { createGateway, type ModelRoute } from '@aworld-train/gateway'
import { request } from 'undici'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { sampling, sure, tolerance, type VllmBench } from './bench.ts'
import { clock, contextLength } from './tool-model.ts'

/** What a gateway records of agents whose policy a vLLM samples; `bench` is opened before. */
export function describeGatewayOverVllm(bench: () => VllmBench): void {
  let vllm: VllmBench
  beforeAll(() => {
    vllm = bench()
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
      const fleet = await createVllmFleet({ replicas: [vllm.url] })
      const engine = await createVllmTokenEngine({ fleet, model: vllm.model, served: 'tiny' })
      await vllm.publish(engine, 'base')
      const route: ModelRoute =
        kind === 'token'
          ? { kind, engine, chat: vllm.chat }
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
      expect(first.tool_calls?.map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([
        ['clock', { zone: 'UTC' }],
      ])
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
        expect(turn.weightVersions).toEqual([{ fromToken: 0, version: vllm.version }])
        expect(await vllm.largestDifference('base', turn, sure)).toBeLessThan(tolerance)
      }
      expect(gateway.counts().inFlight + fleet.counts().inFlight).toBe(0)
      await gateway.close()
      await fleet.close()
    })

    test('keeps what had come of a stream whose client left, with the logprobs of the weights', async () => {
      const fleet = await createVllmFleet({ replicas: [vllm.url] })
      onTestFinished(() => fleet.close())
      const tokens = await createVllmTokenEngine({ fleet, model: vllm.model, served: 'tiny' })
      await vllm.publish(tokens, 'base')
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
        const until = Date.now() + 60_000
        while ((await vllm.metric('vllm:num_requests_running')) + gateway.counts().inFlight > 0 && Date.now() < until) await sleep(50)
        expect(await vllm.metric('vllm:num_requests_running')).toBe(0)
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
      expect(await vllm.largestDifference('base', turn, 2)).toBeLessThan(tolerance)
    })

    test('answers in the form that response_format asks for, and records that it was held to it', async () => {
      const engine = await vllm.tokenEngine()
      await vllm.publish(engine, 'base')
      const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat: vllm.chat } }, seed: 1 })
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
}
