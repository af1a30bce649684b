import { createGateway } from '../gateway.ts'
import type { Gateway, GatewayOptions } from '../options.ts'
import { type ChatServer, type SeenCall, type ServerSay, startChatServer } from './chat-server.ts'
import { type HttpChatEngine, httpChatEngine } from './http-chat-engine.ts'

export interface StartedChatGateway extends AsyncDisposable {
  readonly gateway: Gateway
  readonly engine: HttpChatEngine
  readonly server: ChatServer
}

/** A gateway in front of a chat engine, all over real sockets. Its model is named `policy`. */
export async function startChatGateway(
  say: (call: SeenCall, index: number) => ServerSay | Promise<ServerSay>,
  options: Partial<Omit<GatewayOptions, 'models'>> = {},
): Promise<StartedChatGateway> {
  const server = await startChatServer(say)
  const engine = httpChatEngine(server.url)
  const gateway = await createGateway({ models: { policy: { kind: 'chat', engine } }, seed: 1, ...options })
  return {
    gateway,
    engine,
    server,
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await engine.close()
      await server[Symbol.asyncDispose]()
    },
  }
}
