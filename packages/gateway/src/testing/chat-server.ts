import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The server's answer: text, whose ids are its characters, or an answer of any other shape. */
export type ServerSay =
  | string
  | {
      readonly text: string
      /** Members of the choice that replace or remove (`undefined`) what a sound server reports. */
      readonly choice?: Record<string, unknown>
      /** Events of a stream that are not sent, as a tool parser drops them. */
      readonly drops?: readonly number[]
      /** Members of the usage that replace the true ones. */
      readonly usage?: Record<string, unknown>
      /** Sends this many events of a stream and then nothing more, or ends the socket. */
      readonly halfWay?: { readonly events: number; readonly ends: 'hang' | 'destroy' | 'end' }
    }
  | { readonly status: number; readonly body: string; readonly headers?: Record<string, string> }
  | { readonly raw: string; readonly type?: string }
  | 'nothing'

export interface SeenCall {
  readonly raw: string
  readonly body: { messages: { role: string; content: string }[]; stream?: boolean } & Record<string, unknown>
  readonly headers: IncomingMessage['headers']
  /** The socket closed before the answer was whole. */
  aborted: boolean
}

export interface ChatServer extends AsyncDisposable {
  readonly url: string
  readonly calls: SeenCall[]
  /** Calls whose answers are not whole. */
  inFlight(): number
}

const codes = (text: string) => Array.from(text, (character) => character.charCodeAt(0))
const endOfTurn = '\0'

/** The prompt of a conversation, in which an answer stands as it was sampled. */
export const promptOf = (messages: readonly { role: string; content: string }[]) =>
  `${messages.map(({ role, content }) => `<${role}>${content}${role === 'assistant' ? endOfTurn : ''}`).join('')}<assistant>`

/** The logprob that the server reports for an id. */
export const logprob = (id: number) => -(id + 1) / 128

/** An entry of `logprobs`, with as many alternatives as are asked for. */
const entryOf = (id: number, top: number) => {
  const token = String.fromCharCode(id)
  const alternatives = Array.from({ length: top }, (_, index) => ({ token: `${index}`, logprob: -index - 1, bytes: [48 + index] }))
  return { token, logprob: logprob(id), bytes: [id], top_logprobs: alternatives }
}

const usageOf = (prompt: string, ids: readonly number[]) => {
  const { length } = codes(prompt)
  return { prompt_tokens: length, completion_tokens: ids.length, total_tokens: length + ids.length }
}

/** An answer of text. */
type Told = Extract<ServerSay, { readonly text: string }>

function answerJson(prompt: string, top: number, { text, choice, usage }: Told) {
  const ids = codes(text + endOfTurn)
  return JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'served',
    prompt_token_ids: codes(prompt),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text },
        token_ids: ids,
        logprobs: { content: ids.map((id) => entryOf(id, top)) },
        finish_reason: 'stop',
        ...choice,
      },
    ],
    usage: { ...usageOf(prompt, ids), ...usage },
  })
}

function answerEvents(prompt: string, top: number, { text, choice, usage, drops = [] }: Told, isCounted: boolean): string[] {
  const ids = codes(text + endOfTurn)
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'served' }
  const event = (choices: object[], extra?: object) => `data: ${JSON.stringify({ ...head, choices, ...extra })}\n\n`
  const events = [
    event([{ index: 0, delta: { role: 'assistant', content: '' } }], { prompt_token_ids: codes(prompt) }),
    ...ids.map((id, at) =>
      event([
        {
          index: 0,
          delta: { content: text[at] ?? '' },
          token_ids: [id],
          logprobs: { content: [entryOf(id, top)] },
          finish_reason: at === ids.length - 1 ? 'stop' : null,
          ...choice,
        },
      ]),
    ),
    ...(isCounted ? [event([], { usage: { ...usageOf(prompt, ids), ...usage } })] : []),
    'data: [DONE]\n\n',
  ]
  return events.filter((_, index) => !drops.includes(index))
}

function end(response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, { 'content-type': type }).end(text)
}

async function answer(reply: ServerSay, { body }: SeenCall, response: ServerResponse): Promise<void> {
  if (reply === 'nothing') return void response.destroy()
  if (typeof reply === 'object' && 'status' in reply) {
    return void response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(reply.body)
  }
  if (typeof reply === 'object' && 'raw' in reply) return end(response, reply.type ?? 'application/json', reply.raw)
  const words = typeof reply === 'string' ? { text: reply } : reply
  const { halfWay } = words
  const prompt = promptOf(body.messages)
  const top = Number(body['top_logprobs'] ?? 0)
  if (body.stream !== true) return end(response, 'application/json', answerJson(prompt, top, words))
  const options = body['stream_options'] as { include_usage?: boolean } | null | undefined
  const events = answerEvents(prompt, top, words, options?.include_usage === true)
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  if (!halfWay) return void response.end(events.join(''))
  response.write(events.slice(0, halfWay.events).join(''))
  if (halfWay.ends === 'destroy') setImmediate(() => response.destroy())
  else if (halfWay.ends === 'end') response.end()
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** A server of Chat Completions on loopback that reports ids and logprobs in the fields of vLLM's `return_token_ids`. */
export async function startChatServer(say: (call: SeenCall, index: number) => ServerSay | Promise<ServerSay>): Promise<ChatServer> {
  const calls: SeenCall[] = []
  let inFlight = 0
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    inFlight++
    let seen: SeenCall | undefined
    response.once('close', () => {
      inFlight--
      if (seen && !response.writableFinished) seen.aborted = true
    })
    const raw = await readText(request)
    seen = { raw, body: JSON.parse(raw), headers: request.headers, aborted: false }
    const index = calls.push(seen) - 1
    await answer(await say(seen, index), seen, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    inFlight: () => inFlight,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
