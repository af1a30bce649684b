import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ThirdPartyCall {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  readonly body: Record<string, unknown>
}

export interface ThirdParty extends AsyncDisposable {
  /** Base URL, which ends with `/v1`. */
  readonly url: string
  readonly calls: ThirdPartyCall[]
  /** Answers whose client went away. */
  readonly aborted: () => number
}

/** A third party's server on loopback that answers as `answer` does. */
export async function startThirdParty(
  answer: (call: ThirdPartyCall, response: ServerResponse, index: number) => void,
): Promise<ThirdParty> {
  const calls: ThirdPartyCall[] = []
  let aborted = 0
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    response.once('close', () => {
      if (!response.writableFinished) aborted++
    })
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const raw = Buffer.concat(chunks).toString('utf8')
    const call = { path: request.url ?? '', headers: request.headers, raw, body: raw === '' ? {} : JSON.parse(raw) }
    answer(call, response, calls.push(call) - 1)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    aborted: () => aborted,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

type Reply = { readonly whole: object } | { readonly events: readonly object[]; readonly end?: string }

function chatCompletion(model: unknown, stream: boolean, text: string): Reply {
  const usage = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 40 } }
  const head = { id: 'c-1', created: 1, model }
  const message = { role: 'assistant', content: text }
  if (!stream) return { whole: { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage } }
  const chunk = (choices: object[], extra: object = {}) => ({ ...head, object: 'chat.completion.chunk', choices, ...extra })
  const deltas = [...text].map((content) => chunk([{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }]))
  const end = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])
  return { events: [...deltas, end, chunk([], { usage })], end: 'data: [DONE]\n\n' }
}

function openResponse(model: unknown, stream: boolean, text: string): Reply {
  const content = [{ type: 'output_text', text, annotations: [] }]
  const whole = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model,
    status: 'completed',
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }],
    usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 40 }, output_tokens: 10, total_tokens: 110 },
  }
  if (!stream) return { whole }
  return {
    events: [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: text },
      { type: 'response.completed', response: whole },
    ],
  }
}

function anthropicMessage(model: unknown, stream: boolean, text: string): Reply {
  const usage = { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 10 }
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model }
  if (!stream) return { whole: { ...head, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage } }
  return {
    events: [
      { type: 'message_start', message: { ...head, content: [], usage: { ...usage, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 10 } },
      { type: 'message_stop' },
    ],
  }
}

/** Answers with `text` in the dialect that the path names. The usage is 100 tokens read, 40 of them from a cache, and 10 written. */
export function say({ path, body }: ThirdPartyCall, response: ServerResponse, text: string): void {
  const speak = path.endsWith('/chat/completions') ? chatCompletion : path.endsWith('/responses') ? openResponse : anthropicMessage
  const reply = speak(body['model'], body['stream'] === true, text)
  if ('whole' in reply) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply.whole))
    return
  }
  const named = (value: object) => ('type' in value ? `event: ${value.type}\n` : '')
  const events = reply.events.map((value) => `${named(value)}data: ${JSON.stringify(value)}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events.join('') + (reply.end ?? ''))
}
