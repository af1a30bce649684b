import type { Constraint } from '@aworld-train/core'
import { afterEach, expect, test } from 'vitest'
import { toGrammarParams } from '../sglang/grammar-params.ts'
import { createSglangTokenEngine } from '../sglang/sglang-engines.ts'
import { toyCall } from '../testing/fleet-calls.ts'
import { createToySglang } from '../testing/sglang-server.ts'
import { toyModel } from '../testing/toy-policy.ts'
import { createToyVllm } from '../testing/vllm-server.ts'
import { createVllmChatEngine, createVllmTokenEngine } from '../vllm/vllm-engines.ts'
import { allConstraints } from './all-constraints.ts'

const signal = new AbortController().signal
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

const kinds = ['generate', 'completions', 'sglang'] as const

async function open(kind: (typeof kinds)[number]) {
  const server = await (kind === 'sglang' ? createToySglang() : createToyVllm())
  const options = { replicas: [server.url], model: toyModel }
  const engine = await (kind === 'sglang' ? createSglangTokenEngine(options) : createVllmTokenEngine({ ...options, route: kind }))
  closers.push(
    () => engine.close(),
    () => server.close(),
  )
  const last = () => server.seen.findLast(({ method, json }) => method === 'POST' && 'stream' in json)!
  const params = () => (kind === 'completions' ? last().json : last().json['sampling_params']) as Record<string, unknown>
  return { engine, params, last }
}

const schema = '{"type": "object", "maxProperties": 1.0}'
const forms: readonly [Constraint, object, object][] = [
  [{ kind: 'json-object' }, { json_object: true }, { json_schema: '{"type":"object"}' }],
  [{ kind: 'json-schema', schema }, { json: schema }, { json_schema: schema }],
  [{ kind: 'regex', pattern: '[0-9]+' }, { regex: '[0-9]+' }, { regex: '[0-9]+' }],
  [{ kind: 'choice', choices: ['a', 'b|c'] }, { choice: ['a', 'b|c'] }, { regex: '(a|b\\|c)' }],
  [{ kind: 'grammar', grammar: 'root ::= "a"' }, { grammar: 'root ::= "a"' }, { ebnf: 'root ::= "a"' }],
]
const names = ['structured_outputs', 'json_schema', 'regex', 'ebnf']

for (const kind of kinds) {
  test(`a form reaches the server in its own words, and only where one is asked for: ${kind}`, async () => {
    const { engine, params } = await open(kind)
    expect(engine.constraints).toEqual(new Set(forms.map(([{ kind: form }]) => form)))
    for (const [constraint, vllm, sglang] of forms) {
      await engine.generate(toyCall({ constraint }), signal)
      const constraintFields = Object.fromEntries(Object.entries(params()).filter(([name]) => names.includes(name)))
      expect(constraintFields).toEqual(kind === 'sglang' ? sglang : { structured_outputs: vllm })
    }
    await engine.generate(toyCall(), signal)
    expect(Object.keys(params()).filter((name) => names.includes(name))).toEqual([])
  })

  test(`the caller's trace reaches the server, call by call: ${kind}`, async () => {
    const { engine, last } = await open(kind)
    for (const digit of ['1', '2']) {
      const traceparent = `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
      await engine.generate(toyCall({ traceHeaders: { traceparent, tracestate: 'a=1,b=2' } }), signal)
      expect(last().headers).toMatchObject({ traceparent, tracestate: 'a=1,b=2' })
    }
    await engine.generate(toyCall(), signal)
    expect(last().headers).not.toHaveProperty('traceparent')
    const injected = engine.generate(toyCall({ traceHeaders: { traceparent: 'x\r\nauthorization: Bearer y' } }), signal)
    await expect(injected).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
}

test('a chat engine sends the trace along', async () => {
  const server = await createToyVllm()
  const engine = await createVllmChatEngine({ replicas: [server.url], model: { name: 'toy', contextLength: 256 } })
  closers.push(
    () => engine.close(),
    () => server.close(),
  )
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`
  const call = { body: Buffer.from('{"messages":[]}'), stream: false, affinity: 'one', traceHeaders: { traceparent } }
  await engine.send(call, { onHead() {}, onData: () => true }, signal).catch(() => {})
  const chatCalls = server.seen.filter(({ path }) => path === '/v1/chat/completions')
  expect(chatCalls.map(({ headers }) => headers['traceparent'])).toEqual([traceparent])
})

test('every character of a choice is meant', () => {
  const choices = ['a.b', '(c)', '[d]', 'e\\f', '$1', '^', 'g{2}', 'h*', 'i+', 'j?', 'k|l', 'm-n', 'o/p', 'ü', 'q"r']
  const { regex } = toGrammarParams({ kind: 'choice', choices }) as { regex: string }
  const pattern = new RegExp(`^${regex}$`)
  for (const choice of choices) expect(choice).toMatch(pattern)
  for (const other of ['axb', 'c', 'd', 'ef', 'gg', 'hh', 'k', '']) expect(other).not.toMatch(pattern)
  expect(allConstraints.size).toBe(5)
})
