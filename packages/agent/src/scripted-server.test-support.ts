import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ScriptedCall {
  readonly id?: string
  readonly name: string
  readonly arguments: string
}

/** A scripted model's answer to one call. */
export type ScriptedReply =
  | { readonly content: string; readonly finishReason?: string; readonly reasoning?: string; readonly malformedCall?: true }
  | { readonly content?: string; readonly reasoning?: string; readonly toolCalls: readonly ScriptedCall[] }
  | { readonly status: number; readonly error: { readonly message: string; readonly code?: string } }
  /** Sends no answer until the client hangs up. */
  | 'hang'

export interface SeenRequest {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: {
    readonly model: string
    readonly messages: readonly Record<string, unknown>[]
    readonly tools?: readonly { readonly function: { readonly name: string } }[]
    readonly [key: string]: unknown
  }
}

/** A Chat Completions server on loopback that answers from a script and keeps the requests. */
export interface ScriptedServer extends AsyncDisposable {
  readonly baseUrl: string
  readonly requests: readonly SeenRequest[]
  /** Resolves when a client hung up on a call that was not answered. */
  readonly hungUp: Promise<void>
}

export type Script = readonly ScriptedReply[] | ((request: SeenRequest, index: number) => ScriptedReply)

/** Starts the server. The answers of an array are given in order; a call past its end gets status 500. */
export async function createScriptedServer(script: Script, port = 0): Promise<ScriptedServer> {
  const requests: SeenRequest[] = []
  const hungUp = Promise.withResolvers<void>()
  const next = (request: SeenRequest, index: number): ScriptedReply => {
    if (typeof script === 'function') return script(request, index)
    return script[index] ?? { status: 500, error: { message: 'the script is over' } }
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const seen: SeenRequest = { url: request.url ?? '', headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) }
    requests.push(seen)
    const reply = next(seen, requests.length - 1)
    if (reply === 'hang') response.on('close', () => hungUp.resolve())
    else answer(response, reply, requests.length)
  })
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    hungUp: hungUp.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answer(response: ServerResponse, reply: Exclude<ScriptedReply, 'hang'>, index: number): void {
  const send = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  if ('status' in reply) {
    send(reply.status, { error: { type: 'error', ...reply.error } })
    return
  }
  const calls = 'toolCalls' in reply ? reply.toolCalls : []
  const message = {
    role: 'assistant',
    content: reply.content ?? null,
    ...(reply.reasoning ? { reasoning_content: reply.reasoning } : {}),
    ...(calls.length > 0
      ? { tool_calls: calls.map(({ id, name, arguments: text }) => ({ id, type: 'function', function: { name, arguments: text } })) }
      : {}),
  }
  const finishReason = 'finishReason' in reply && reply.finishReason ? reply.finishReason : calls.length > 0 ? 'tool_calls' : 'stop'
  send(200, {
    id: `chatcmpl-${index}`,
    object: 'chat.completion',
    created: 0,
    model: 'scripted',
    choices: [{ index: 0, message, finish_reason: finishReason, ...('malformedCall' in reply && { malformed_call: true }) }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  })
}
