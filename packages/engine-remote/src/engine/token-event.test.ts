import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readAnswer } from '../vllm/vllm-reader.ts'
import { prefixOf, readTokenEvent } from './token-event.ts'

interface Token {
  readonly content: string
  readonly id: number
  readonly logprob: number
  /** Written in a way that only JSON.parse reads. */
  readonly odd: 'spaces' | 'alternatives' | 'usage' | null
}

const common = { id: 'chatcmpl-"1"', object: 'chat.completion.chunk', created: 1, model: 'm' }
const token: fc.Arbitrary<Token> = fc.record({
  content: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\\"', '"}', ']}]}', '\n', '')),
  id: fc.nat(200_000),
  logprob: fc.double({ noNaN: true, min: -50, max: 0 }),
  odd: fc.oneof({ arbitrary: fc.constant(null), weight: 5 }, fc.constantFrom('spaces', 'alternatives', 'usage')),
})

function event({ content, id, logprob, odd }: Token, finish: string | null): string {
  const alternatives = odd === 'alternatives' ? [{ token: 'x', logprob: -1, bytes: null }] : []
  const logprobs = { content: [{ token: content, logprob, bytes: [1, 2], top_logprobs: alternatives }] }
  const choice = { index: 0, delta: { content }, logprobs, finish_reason: finish, token_ids: [id] }
  return JSON.stringify(
    { ...common, choices: [choice], ...(odd === 'usage' && { usage: null }) },
    null,
    odd === 'spaces' ? ' ' : undefined,
  ).replaceAll('\n', ' ')
}

test('whatever its tokens are, a stream is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.array(token, { minLength: 1, maxLength: 12 }), (tokens) => {
      const first = JSON.stringify({
        ...common,
        choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
        prompt_token_ids: [1, 2],
      })
      const events = [first, ...tokens.map((each, index) => event(each, index === tokens.length - 1 ? 'stop' : null)), '[DONE]']
      const read = readAnswer(Buffer.from(events.map((each) => `data: ${each}\n\n`).join('')), true, 'text/event-stream')
      const content = tokens.map((each) => JSON.parse(JSON.stringify(each.content))).join('')
      expect(read.message).toEqual({
        role: 'assistant',
        content: Buffer.from(content).toString() === content ? content : read.message.content,
      })
      expect([...read.completionTokenIds]).toEqual(tokens.map(({ id }) => id))
      expect(read.rolloutLogprobs).toEqual(Float32Array.from(tokens, ({ logprob }) => Number(JSON.stringify(logprob))))
    }),
    { numRuns: 300 },
  )
})

test('an event is read at once only where it is a token in the middle of an answer', () => {
  const prefix = prefixOf(JSON.stringify(common).slice(1, -1).concat(','))
  const plain = { content: 'a"b', id: 70, logprob: -0.5, odd: null }
  const readOf = (text: string) => readTokenEvent(`data: ${text}\n\n`, 6, 6 + text.length, prefix)
  expect(readOf(event(plain, null))).toEqual({ content: 'a\\"b', id: 70, logprob: -0.5 })
  for (const odd of ['spaces', 'alternatives', 'usage'] as const) expect(readOf(event({ ...plain, odd }, null))).toBeNull()
  expect(readOf(event(plain, 'stop'))).toBeNull()
  expect(readOf(event(plain, null).replace('[70]', '[70,71]'))).toBeNull()
  expect(readOf(event(plain, null).replace('-0.5', '"no"'))).toBeNull()
  expect(readOf(event(plain, null).replace('chat.', 'other'))).toBeNull()
})
