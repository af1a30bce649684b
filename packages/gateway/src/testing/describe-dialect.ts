import { type FinishReason, type Message, TrainError } from '@aworld-train/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AnswerHead, Completion, Dialect, ModelCall } from '../call.ts'
import { createResponseMemory } from '../dialects/responses/memory.ts'
import type { ServerAnswer } from '../dialects/server-answer.ts'
import { toHttpFailure } from '../failure.ts'
import { completions, modelCalls, toPieces } from './arbitrary-call.ts'
import type { Body, DialectClient } from './dialect-client.ts'

export interface DescribeDialectOptions {
  readonly dialect: Dialect
  readonly client: DialectClient
  /** A name, a body, and the field that the refusal names. */
  readonly refused: readonly (readonly [name: string, body: unknown, param: string | null])[]
  /** Parts of a message that are not text. */
  readonly unreadable: readonly Body[]
  /** The dialect's answer to a failure: `type`, `code`, `message` and `param` in its own shape. */
  readonly failureShape: (fields: { type: string; code: string; message: string; param: string | null }, requestId: string) => object
}

const decodeBody = (dialect: Dialect, body: unknown, memory = createResponseMemory()): ModelCall => {
  const json = typeof body === 'string' ? body : JSON.stringify(body)
  return dialect.decode(JSON.parse(json), json, memory)
}

const headOf = (call: ModelCall): AnswerHead => ({
  id: '0123456789ab-7',
  created: 1_700_000_000,
  model: 'policy',
  call,
  promptTokenIds: Int32Array.of(1, 2, 3),
  tokenText: (id) => String.fromCharCode(id),
  memory: createResponseMemory(),
})

/** Makes null, missing and '' equal. */
const exact = ({ content, toolCalls = [], ...message }: Message) => ({ ...message, content: content ?? '', toolCalls })

/** Compares arguments as JSON, because a client that parses them writes them anew. */
function canonical(message: Message): object {
  const { toolCalls, ...rest } = exact(message)
  return { ...rest, toolCalls: toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: JSON.parse(text) })) }
}

const canonicalAll = (messages: readonly Message[]) => messages.map(canonical)

function streamed(dialect: Dialect, head: AnswerHead, completion: Completion, size: number): string {
  const encoder = dialect.createStream(head)
  const pieces = toPieces(completion, size).map((piece) => encoder.piece.bind(encoder, piece))
  return encoder.start() + pieces.map((piece) => piece()).join('') + encoder.end(completion)
}

/** Reads a stream in chunks of `size` bytes. Returns the answer, and the message that its deltas make when joined. */
function readStream(client: DialectClient, text: string, size: number): { readonly answer: ServerAnswer; readonly joined: Message } {
  const decoder = client.createDecoder()
  const bytes = Buffer.from(text)
  const joined: Message = { role: 'assistant', content: '' }
  const add = (piece: ReturnType<typeof decoder.push>) => {
    for (const delta of piece?.deltas ?? []) {
      if (delta.type === 'content') joined.content += delta.text
      else if (delta.type === 'reasoning') joined.reasoning = (joined.reasoning ?? '') + delta.text
      else joined.toolCalls = [...(joined.toolCalls ?? []), delta.call]
    }
  }
  for (let at = 0; at < bytes.length; at += size) add(decoder.push(bytes.subarray(at, at + size)))
  const { piece, answer } = decoder.finish()
  add(piece)
  return { answer, joined }
}

function caught(run: () => unknown): TrainError {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(TrainError)
    return error as TrainError
  }
  throw new Error('nothing was thrown')
}

/** JSON for places where other JSON belongs. */
export const oddJson = fc.oneof(
  { weight: 8, arbitrary: fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)) },
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      'null',
      '""',
      '0',
      '-1',
      'true',
      '[]',
      '{}',
      '[[]]',
      '[null]',
      '{"type":"constructor"}',
      '[{"type":"text"}]',
      '1e308',
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(JSON.stringify('long '.repeat(5_000)), '['.repeat(20_000) + ']'.repeat(20_000)) },
)

/** The JSON of `body` with `json` at `path`. */
export function withOddJson(body: Body, path: readonly number[], json: string): string {
  const mark = '\u0000here'
  return JSON.stringify(replaceAt(body, path, mark)).replace(JSON.stringify(mark), () => json)
}

/** A copy of `target` with `value` at `path`, where each number chooses a member at its level. */
function replaceAt(target: unknown, path: readonly number[], value: unknown): unknown {
  const [choice, ...rest] = path
  if (choice === undefined || typeof target !== 'object' || target === null) return value
  const keys = Object.keys(target)
  const key = keys[choice % Math.max(keys.length, 1)]
  if (key === undefined) return value
  const inner = replaceAt((target as Body)[key], rest, value)
  return Array.isArray(target) ? target.with(Number(key), inner) : { ...target, [key]: inner }
}

/** The tests that every dialect passes: written calls are read, and answers arrive, whole and streamed alike. */
export function describeDialect({ dialect, client, refused, unreadable, failureShape }: DescribeDialectOptions): void {
  const simple = decodeBody(dialect, client.bodyWithPart({ type: 'text', text: 'Hi.' }))
  const write = (changes: Partial<ModelCall>) => client.writeCall({ ...simple, model: 'policy', maxTokens: 9, ...changes })

  describe(`dialect: ${dialect.name}`, () => {
    test('reads the calls that a client writes', () => {
      fc.assert(
        fc.property(modelCalls, (call) => {
          const read = decodeBody(dialect, client.writeCall(call))
          expect(canonicalAll(read.messages)).toEqual(canonicalAll(client.expected(call.messages)))
          // A choice means nothing without tools, and some dialects cannot express it then.
          if (call.tools.length > 0) expect(read.toolChoice.kind).toBe(call.toolChoice.kind)
          if (call.tools.length > 0 && call.toolChoice.kind !== 'none') expect(read.toolChoice).toEqual(call.toolChoice)
          expect(read.tools.map(({ name, description }) => [name, description])).toEqual(
            call.tools.map(({ name, description }) => [name, description]),
          )
          expect(read.tools.map(({ parameters }) => parameters)).toEqual(call.tools.map(({ parameters }) => parameters))
          const { model, stream, maxTokens, requestedSampling, oddities } = call
          expect(read).toMatchObject({ model, stream, maxTokens, requestedSampling, oddities })
        }),
        { numRuns: 50 },
      )
    })

    test('an answer is the same whole and streamed, in pieces of any size', () => {
      fc.assert(
        fc.property(completions, fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }), (completion, size, bytes) => {
          const head = headOf({ ...simple, wants: { ...simple.wants, streamUsage: true } })
          const whole = client.readAnswer(dialect.encode(head, completion))
          const { answer, joined } = readStream(client, streamed(dialect, head, completion, size), bytes)
          expect(exact(whole.completion.message)).toEqual(exact(completion.message))
          expect(exact(answer.completion.message)).toEqual(exact(completion.message))
          expect(exact(joined)).toEqual(exact(completion.message))
          for (const { completion: read } of [whole, answer]) {
            expect(read.finishReason.unified).toBe(completion.finishReason.unified)
            expect(read.usage).toEqual(completion.usage)
          }
          expect([whole.model, whole.id]).toEqual(['policy', answer.id])
        }),
        { numRuns: 50 },
      )
    })

    test('an answer that is sent back is read as it was given', () => {
      fc.assert(
        fc.property(modelCalls, completions, fc.boolean(), (call, completion, sealed) => {
          const body = client.writeCall(call)
          const head = headOf(decodeBody(dialect, sealed ? { ...body, include: ['reasoning.encrypted_content'] } : body))
          const answer = JSON.parse(dialect.encode(head, completion)) as Body
          const { messages } = decodeBody(dialect, client.nextBody(body, answer, 'And then?'))
          expect(canonical(messages.at(-2)!)).toEqual(canonical(completion.message))
          expect(messages.at(-1)).toEqual({ role: 'user', content: 'And then?' })
          expect(canonicalAll(messages.slice(0, -2))).toEqual(canonicalAll(head.call.messages))
        }),
        { numRuns: 50 },
      )
    })

    test('an answer without anything, and one cut before it said anything', () => {
      for (const unified of ['stop', 'length'] as const) {
        const completion: Completion = {
          message: { role: 'assistant', content: null },
          finishReason: { unified, raw: unified },
          tokenIds: Int32Array.of(2),
          logprobs: Float32Array.of(-1),
          usage: { promptTokens: 3, completionTokens: 1, cachedTokens: 0 },
        }
        const head = headOf(simple)
        for (const answer of [
          client.readAnswer(dialect.encode(head, completion)),
          readStream(client, streamed(dialect, head, completion, 1), 7).answer,
        ]) {
          expect(canonical(answer.completion.message)).toEqual({ role: 'assistant', content: '', toolCalls: [] })
          expect(answer.completion.finishReason.unified).toBe(unified)
        }
      }
    })

    test('what was broken off or held back is never told as if it were complete', () => {
      const [whole] = fc.sample(completions, { numRuns: 1, seed: 5 })
      const complete = { ...whole!, message: { role: 'assistant' as const, content: 'Half' } }
      const finishFields = (unified: FinishReason['unified'], raw: string) => {
        const completion = { ...complete, finishReason: { unified, raw } }
        return client.readAnswer(dialect.encode(headOf(simple), completion)).completion.finishReason
      }
      const stopped = finishFields('stop', 'stop')
      for (const unified of ['length', 'aborted', 'error'] as const) expect(finishFields(unified, 'abort').unified).toBe('length')
      expect(finishFields('stop', 'content_filter').raw).not.toBe(stopped.raw)
    })

    test('an answer gives ids on request', () => {
      const call = decodeBody(dialect, { ...client.bodyWithPart({ type: 'text', text: 'Hi.' }), return_token_ids: true })
      const [completion] = fc.sample(completions, { numRuns: 1, seed: 3 })
      const answer = JSON.stringify(JSON.parse(dialect.encode(headOf(call), completion!)))
      expect(answer).toContain(`"token_ids":${JSON.stringify(Array.from(completion!.tokenIds))}`)
      expect(answer).toContain('"prompt_token_ids":[1,2,3]')
      expect(JSON.stringify(JSON.parse(dialect.encode(headOf(simple), completion!)))).not.toContain('token_ids"')
    })

    test('fields that it does not know are kept as they were written', () => {
      const body = JSON.stringify({ ...write({}), temperature: 0.5, x_deep: 0 })
      const json = body.replace(
        '"x_deep":0',
        `"x_deep":{"10":1.0, "9":"é"},"__proto__":[1],"user_x":null,"x_list":${'['.repeat(9_000)}${']'.repeat(9_000)}`,
      )
      const { unusedFields, ignored } = decodeBody(dialect, json)
      expect(unusedFields).toMatchObject({ x_deep: '{"10":1.0, "9":"é"}', temperature: '0.5' })
      expect(Object.keys(unusedFields).sort()).toEqual(['__proto__', 'temperature', 'x_deep', 'x_list'])
      expect(unusedFields['x_list']?.length).toBe(18_000)
      expect([...ignored].sort()).toEqual(['other', 'other', 'other', 'temperature'])
    })

    test('schemas are kept as they were written', () => {
      const schema = '{"type": "object", "properties": {"10": {"minimum": 1.0}, "9": {"enum": ["\\u00e9"]}}}'
      const body = JSON.stringify(write({}))
      const { toolsJson, tools } = decodeBody(
        dialect,
        body.replace(/"tools":\[\]|\}$/g, (end) => (end === '}' ? `,"tools":${client.toolsText(schema)}}` : '"x":0')),
      )
      expect(toolsJson).toBe(`[{"type":"function","function":{"name":"f","parameters":${schema}}}]`)
      expect(tools).toEqual([{ name: 'f', parameters: JSON.parse(schema) }])
    })

    test('a lone surrogate becomes the replacement character', () => {
      const { messages } = decodeBody(dialect, client.bodyWithPart({ type: 'text', text: 'a\ud800b\udc00' }))
      expect(messages).toEqual([{ role: 'user', content: 'a\ufffdb\ufffd' }])
    })

    test('the last of two members of one name counts', () => {
      const body = JSON.stringify(write({ maxTokens: 5 }))
      const doubled = `${body.slice(0, -1)},"model":"last","model":"very last"}`
      expect(decodeBody(dialect, doubled).model).toBe('very last')
    })

    test('what is not text is refused with its path', () => {
      for (const part of unreadable) {
        const error = caught(() => decodeBody(dialect, client.bodyWithPart(part)))
        expect(error.code).toBe('GATEWAY_INPUT_UNSUPPORTED')
        expect(error.details?.['param']).toMatch(/^(messages|input)\[0\]\.content\[0\]\.type$/)
        expect(toHttpFailure(error, { sampled: false, requestId: 'req_1' })).toMatchObject({
          status: 400,
          code: 'input_unsupported',
          retry: false,
        })
      }
    })

    test('a bad body is refused with the field that is wrong', () => {
      for (const [name, body, param] of refused) {
        const error = caught(() => decodeBody(dialect, body))
        expect([name, error.code, error.details?.['param']]).toEqual([name, 'GATEWAY_BAD_REQUEST', param])
        expect(error.message).not.toMatch(/undefined|\[object/)
      }
    })

    test('whatever stands in the place of whatever, a body is read or refused with a field', () => {
      const codes = ['GATEWAY_BAD_REQUEST', 'GATEWAY_INPUT_UNSUPPORTED']
      fc.assert(
        fc.property(modelCalls, fc.array(fc.nat(50), { maxLength: 6 }), oddJson, (call, path, json) => {
          const body = withOddJson(client.writeCall(call), path, json)
          let error: unknown = null
          try {
            decodeBody(dialect, body)
          } catch (thrown) {
            error = thrown
          }
          if (error === null) return
          expect(error).toBeInstanceOf(TrainError)
          const { code, details, message } = error as TrainError
          expect(codes).toContain(code)
          expect(details?.['param']).toEqual(expect.any(String))
          expect(message.length).toBeLessThan(2_000)
        }),
        { numRuns: 150 },
      )
    })

    test('unknown fields anywhere break nothing', () => {
      fc.assert(
        fc.property(
          modelCalls,
          fc.dictionary(
            fc.string().map((name) => `x_${name}`),
            fc.jsonValue(),
          ),
          (call, fields) => {
            const body = client.writeCall(call)
            const { unusedFields } = decodeBody(dialect, { ...body, ...fields })
            for (const name in fields) {
              if (fields[name] === null) continue
              expect(JSON.parse(unusedFields[name] ?? '')).toEqual(JSON.parse(JSON.stringify(fields[name])))
            }
          },
        ),
        { numRuns: 50 },
      )
    })

    test('failures have its own shape, whole and in a stream', () => {
      const error = new TrainError('POLICY_CONTEXT_OVERFLOW', 'Too long.', { details: { param: 'messages' } })
      const failure = toHttpFailure(error, { sampled: false, requestId: 'req_1' })
      const fields = { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too long.', param: 'messages' }
      const shape = failureShape(fields, 'req_1')
      expect(JSON.parse(dialect.encodeFailure(failure))).toEqual(shape)

      const encoder = dialect.createStream(headOf({ ...simple, stream: true }))
      const begun = encoder.start() + encoder.piece({ deltas: [{ type: 'content', text: 'Half' }], tokenIds: [], logprobs: [] })
      for (const text of [begun + encoder.fail(failure), dialect.streamComment + dialect.encodeStreamFailure(failure)]) {
        const { code, message } = caught(() => readStream(client, text, 11))
        expect([code, message]).toEqual(['POLICY_RESPONSE_INVALID', expect.stringContaining('Too long.')])
      }
      expect(caught(() => readStream(client, begun, 11)).message).toContain('ended before')
    })
  })
}
