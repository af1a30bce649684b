import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import type { Message } from '@aworld-train/core'
import fc from 'fast-check'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import type { AnswerHead, Completion, Dialect } from '../call.ts'
import { completions, toPieces } from '../testing/arbitrary-call.ts'
import { chatCompletions } from './chat-completions/index.ts'
import { messages } from './messages/index.ts'
import { responses } from './responses/index.ts'
import { createResponseMemory } from './responses/memory.ts'

interface Served extends AsyncDisposable {
  readonly url: string
  /** Sets the answer to the next request. */
  say(completion: Completion): void
}

/** A server that encodes chosen completions in one dialect, so that clients get shapes that few policies write. */
async function serve(dialect: Dialect): Promise<Served> {
  let completion: Completion | undefined
  let calls = 0
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    const call = dialect.decode(JSON.parse(body), body, createResponseMemory())
    const head: AnswerHead = {
      id: `0123456789ab-${calls++}`,
      created: 1_700_000_000,
      model: 'policy',
      call,
      promptTokenIds: Int32Array.of(1, 2, 3),
      tokenText: String,
      memory: createResponseMemory(),
    }
    const answer = completion as Completion
    if (!call.stream) return response.writeHead(200, { 'content-type': 'application/json' }).end(dialect.encode(head, answer))
    const encoder = dialect.createStream(head)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(dialect.streamComment + encoder.start())
    for (const piece of toPieces(answer, 4)) response.write(encoder.piece(piece))
    response.end(encoder.end(answer))
    return undefined
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    say(next) {
      completion = next
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** An answer as its client sees it. */
interface Seen {
  readonly content: string
  readonly reasoning: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]
  readonly end: string | null | undefined
  readonly tokens: number | undefined
}

const calls = ({ toolCalls = [] }: Message) => toolCalls.map(({ id, name, arguments: text }) => ({ id, name, input: JSON.parse(text) }))

function expected({ message, finishReason, usage }: Completion, ends: Readonly<Record<string, string>>): Seen {
  const { content, reasoning = '' } = message
  return { content: content ?? '', reasoning, calls: calls(message), end: ends[finishReason.unified], tokens: usage.completionTokens }
}

async function check(served: Served, ends: Readonly<Record<string, string>>, ask: (stream: boolean) => Promise<Seen>) {
  await fc.assert(
    fc.asyncProperty(completions, fc.boolean(), async (completion, stream) => {
      served.say(completion)
      expect(await ask(stream)).toEqual(expected(completion, ends))
    }),
    { numRuns: 25 },
  )
}

test('the openai client reads every answer of Chat Completions', async () => {
  await using served = await serve(chatCompletions)
  const client = new OpenAI({ baseURL: served.url, apiKey: 'any', maxRetries: 0 })
  await check(served, { stop: 'stop', 'tool-calls': 'tool_calls', length: 'length' }, async (stream) => {
    const request = { model: 'any', messages: [{ role: 'user' as const, content: 'Hi.' }] }
    // The helper gives no partial answer if it was cut, so the chunks are read as most agents read them.
    if (!stream) {
      const { choices, usage } = await client.chat.completions.create(request)
      const { message, finish_reason: end } = choices[0]!
      const { reasoning_content: reasoning = '' } = message as { reasoning_content?: string }
      const made = (message.tool_calls ?? []).map((call) => {
        if (call.type !== 'function') throw new Error(call.type)
        return { id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }
      })
      return { content: message.content ?? '', reasoning, calls: made, end, tokens: usage?.completion_tokens }
    }
    const seen = {
      content: '',
      reasoning: '',
      calls: [] as { id: string; name: string; input: unknown }[],
      end: null as string | null,
      tokens: -1,
    }
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) {
      const [choice] = chunk.choices
      seen.content += choice?.delta.content ?? ''
      seen.reasoning += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
      for (const { index, id, function: called } of choice?.delta.tool_calls ?? []) {
        seen.calls[index] = { id: id!, name: called!.name!, input: JSON.parse(called!.arguments!) }
      }
      seen.end = choice?.finish_reason ?? seen.end
      seen.tokens = chunk.usage?.completion_tokens ?? seen.tokens
    }
    return seen
  })
})

for (const summary of [null, 'auto'] as const) {
  test(`the openai client reads every answer of Responses (${summary ? 'reasoning summarised' : 'reasoning as it is'})`, async () => {
    await using served = await serve(responses)
    const client = new OpenAI({ baseURL: served.url, apiKey: 'any', maxRetries: 0 })
    await check(served, { stop: 'completed', 'tool-calls': 'completed', length: 'incomplete' }, async (stream) => {
      const request = { model: 'any', input: 'Hi.', reasoning: { summary } }
      const seen = { deltas: '' }
      let response: OpenAI.Responses.Response
      if (stream) {
        const events = client.responses.stream(request)
        for await (const event of events) if (event.type === 'response.output_text.delta') seen.deltas += event.delta
        response = await events.finalResponse()
        expect(seen.deltas).toBe(response.output_text)
      } else {
        response = await client.responses.create(request)
      }
      const texts = response.output.flatMap((item) => (item.type === 'reasoning' ? [...(item.content ?? []), ...item.summary] : []))
      const made = response.output.flatMap((item) =>
        item.type === 'function_call' ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) }] : [],
      )
      const { output_text: content, status: end, usage } = response
      return { content, reasoning: texts.map(({ text }) => text).join(''), calls: made, end, tokens: usage?.output_tokens }
    })
  })
}

test("Anthropic's client reads every answer of Messages", async () => {
  await using served = await serve(messages)
  const client = new Anthropic({ baseURL: served.url.replace('/v1', ''), apiKey: 'any', maxRetries: 0 })
  await check(served, { stop: 'end_turn', 'tool-calls': 'tool_use', length: 'max_tokens' }, async (stream) => {
    const request = { model: 'any', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi.' }] }
    const {
      content,
      stop_reason: end,
      usage,
    } = stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request)
    const join = (read: (block: Anthropic.ContentBlock) => string) => content.map(read).join('')
    return {
      content: join((block) => (block.type === 'text' ? block.text : '')),
      reasoning: join((block) => (block.type === 'thinking' && block.signature !== '' ? block.thinking : '')),
      calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [])),
      end,
      tokens: usage.output_tokens,
    }
  })
})
