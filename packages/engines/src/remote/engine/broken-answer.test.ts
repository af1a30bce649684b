import type { ReadAnswer } from '@aworld-train/core'
import { describe, expect, test } from 'vitest'
import { toSingleEventStream } from '../sglang/chat-stream.ts'
import { readAnswer as readSglang } from '../sglang/sglang-reader.ts'
import { readCorpus } from '../testing/corpus.ts'
import { readAnswer as readVllm } from '../vllm/vllm-reader.ts'

const vllm = readCorpus('vllm-0.32')
const sglang = readCorpus('sglang-source')
const bodyOf = (name: string) => Buffer.from(vllm.get(name)!.body)
const broken = { unified: 'aborted', raw: 'client-closed' } as const

const read = (reader: ReadAnswer, body: Uint8Array, stream: boolean) => {
  const { completionTokenIds, rolloutLogprobs, ...rest } = reader(body, stream, broken)
  return { ...rest, ids: Array.from(completionTokenIds), logprobs: Array.from(rolloutLogprobs) }
}

/** Ids in the whole lines of a stream. */
const idsOf = (text: string) =>
  text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .flatMap((line) =>
      (JSON.parse(line.slice(6)) as { choices: { token_ids?: number[] | null }[] }).choices.flatMap((choice) => choice.token_ids ?? []),
    )

/** Positions around the end of every event, and in the middle of it. */
function cutsOf(body: Buffer): number[] {
  const cuts: number[] = []
  for (let end = body.indexOf('\n\n'), start = 0; end >= 0; start = end + 2, end = body.indexOf('\n\n', start))
    cuts.push((start + end) >> 1, end, end + 1, end + 2)
  return cuts.filter((cut) => cut < body.length)
}

describe('a stream of vLLM that broke', () => {
  test.each(['chat, streaming', 'chat with a tool call, streaming'])(
    'is the tokens of its whole events, wherever it was cut: %s',
    (name) => {
      const body = bodyOf(name)
      const whole = read(readVllm, body, true)
      expect(whole.finishReason.raw).not.toBe(broken.raw)
      let cuts = 0
      for (const cut of cutsOf(body)) {
        const part = body.subarray(0, cut)
        const expected = idsOf(part.toString('latin1'))
        if (expected.length === 0) {
          expect(() => read(readVllm, part, true)).toThrow(/answered no choice|before its first token/)
          continue
        }
        const { ids, logprobs, promptTokenIds, finishReason, message, usage } = read(readVllm, part, true)
        expect(ids).toEqual(expected)
        expect(logprobs).toEqual(whole.logprobs.slice(0, ids.length))
        expect(promptTokenIds).toEqual(whole.promptTokenIds)
        expect(usage.completionTokens).toBe(ids.length)
        expect(whole.message.content ?? '').toContain(message.content ?? '')
        expect(finishReason).toEqual(ids.length === whole.ids.length ? whole.finishReason : broken)
        cuts++
      }
      expect(cuts).toBeGreaterThan(60)
    },
  )

  test('is an error where nobody says that it may break off', () => {
    const body = bodyOf('chat, streaming')
    const part = body.subarray(0, body.length - 100)
    expect(read(readVllm, part, true).ids.length).toBeGreaterThan(5)
    expect(() => readVllm(part, true)).toThrow(expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID' }))
  })

  test('ends before an event that is an error', () => {
    const lines = bodyOf('chat, streaming').toString('utf8').split('\n\n')
    const body = `${lines.slice(0, 4).join('\n\n')}\n\ndata: {"error":{"message":"out of memory","code":500}}\n\ndata: [DONE]\n\n`
    const { ids, finishReason } = read(readVllm, Buffer.from(body), true)
    expect(ids).toEqual(idsOf(`${lines.slice(0, 4).join('\n\n')}\n`))
    expect(finishReason).toEqual(broken)
    expect(() => readVllm(Buffer.from(body), true)).toThrow('out of memory')
  })

  test('with ids without logprobs, or with ids of another kind, is no completion', () => {
    const lines = bodyOf('chat, streaming').toString('utf8').split('\n\n').slice(0, 4).join('\n\n')
    for (const spoiled of [
      lines.replace(/"logprobs":\{.*?\},"finish/, '"logprobs":null,"finish'),
      lines.replace(/"token_ids":\[\d+/, '"token_ids":[-5'),
    ]) {
      expect(spoiled).not.toBe(lines)
      expect(() => read(readVllm, Buffer.from(`${spoiled}\n\n`), true)).toThrow(
        expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID' }),
      )
    }
  })
})

test('an answer that is no stream, and the one event that a stream of SGLang is, say nothing before their end', () => {
  const json = bodyOf('chat')
  expect(read(readVllm, json, false).finishReason.unified).toBe('stop')
  expect(() => read(readVllm, json.subarray(0, json.length - 2), false)).toThrow(/not JSON/)
  const event = toSingleEventStream(Buffer.from(sglang.get('chat')!.body))
  expect(read(readSglang, event, true).ids.length).toBeGreaterThan(0)
  for (const cut of [10, 200, event.indexOf('\n') - 1]) expect(() => read(readSglang, event.subarray(0, cut), true)).toThrow(/no choice/)
})

describe('an answer whose parts disagree', () => {
  const invalid = expect.objectContaining({ code: 'POLICY_RESPONSE_INVALID' })
  const event = (ids: number[], logprobs: number[], extra: object = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, token_ids: ids, logprobs: { content: logprobs.map((logprob) => ({ logprob })) }, finish_reason: 'stop' }], ...extra })}\n\n`

  test('within events, though their sum is right, is no completion', () => {
    const lopsided = `${event([1, 2], [-1], { prompt_token_ids: [7] })}${event([3], [-1, -1])}data: [DONE]\n\n`
    expect(() => readVllm(Buffer.from(lopsided), true, null)).toThrow(invalid)
  })

  test('in two lists of prompt ids is no completion; one that is repeated is', () => {
    const twice = (second: number[]) =>
      Buffer.from(`${event([1], [-1], { prompt_token_ids: [7] })}${event([2], [-1], { prompt_token_ids: second })}data: [DONE]\n\n`)
    expect(() => readVllm(twice([8]), true, null)).toThrow(invalid)
    expect(readVllm(twice([7]), true, null).completionTokenIds).toHaveLength(2)
  })

  test('in ids and usage keeps the usage as the server counted it, for the record to compare', () => {
    const usage = { prompt_tokens: 5, completion_tokens: 9 }
    const body = Buffer.from(`${event([1], [-1], { prompt_token_ids: [7], usage })}data: [DONE]\n\n`)
    expect(readVllm(body, true, null).usage).toEqual({ promptTokens: 5, completionTokens: 9, cachedTokens: 0 })
  })
})
