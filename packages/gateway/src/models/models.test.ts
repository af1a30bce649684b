import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { GenerateRequest, SessionRequest } from '@aworld-train/core'
import { scriptedEngine, writeTinyModel } from '@aworld-train/testing'
import { expect, test } from 'vitest'
import { createGateway, type GatewayOptions } from '../index.ts'
import { startChatServer } from '../testing/chat-server.ts'
import { httpChatEngine } from '../testing/http-chat-engine.ts'
import { sessionRequest } from '../testing/start-gateway.ts'
import { say, startThirdParty } from '../testing/third-party.ts'

/** Two policies of one token engine, a chat engine and a third party. */
async function start(options: Partial<GatewayOptions> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'models-test-'))
  const model = await writeTinyModel({ directory, template: chatMlTemplate })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const requests: GenerateRequest[] = []
  const engine = scriptedEngine({
    model,
    script: (request) => {
      requests.push(request)
      return { tokenIds: [...chat.encode(request.policy ?? 'base'), ...model.stopTokenIds] }
    },
  })
  const server = await startChatServer(() => 'served')
  const remote = httpChatEngine(server.url)
  const party = await startThirdParty((call, response) => say(call, response, 'judged'))
  const end = async (): Promise<void> => {
    await remote.close()
    await engine.close()
    await Promise.all([server[Symbol.asyncDispose](), party[Symbol.asyncDispose]()])
    await rm(directory, { recursive: true })
  }
  const gateway = await createGateway({
    models: {
      base: { kind: 'token', engine, chat },
      adapter: { kind: 'token', engine, chat, policy: 'lora-1' },
      remote: { kind: 'chat', engine: remote },
      judge: { kind: 'frozen', baseUrl: party.url, dialect: 'chat-completions', model: 'big' },
    },
    seed: 1,
    ...options,
  }).catch(async (error: unknown) => {
    await end()
    throw error
  })
  const open = (agent: Partial<SessionRequest['agents'][number]> = {}, request: Partial<SessionRequest> = {}) => {
    const session = gateway.open(sessionRequest({ agents: [{ name: 'agent', trainable: true, ...agent }], ...request }))
    const endpoint = session.endpoint('agent')
    const ask = async (model?: unknown) => {
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] })
      const response = await fetch(`${endpoint.baseUrl}/chat/completions`, { method: 'POST', body })
      const answer = (await response.json()) as {
        choices?: { message: { content: string } }[]
        error?: { code: string; message: string; param: string }
      }
      return { status: response.status, content: answer.choices?.[0]?.message.content, error: answer.error }
    }
    return { session, endpoint, ask }
  }
  return {
    open,
    requests,
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await end()
    },
  }
}

test('a request is served by the model that it names, else by the default', async () => {
  await using started = await start({ aliases: { 'gpt-4o': 'adapter' } })
  const { ask, endpoint, session } = started.open()
  expect(endpoint.model).toBe('base')
  const answers: (string | undefined)[] = []
  for (const name of ['base', 'adapter', 'gpt-4o', 'remote', 'judge', undefined, null, '']) answers.push((await ask(name)).content)
  expect(answers).toEqual(['base', 'lora-1', 'lora-1', 'served', 'judged', 'base', 'base', 'base'])
  expect(started.requests.map(({ policy }) => policy)).toEqual([undefined, 'lora-1', 'lora-1', undefined, undefined, undefined])
  const [trajectory] = await session.close()
  expect(trajectory).toMatchObject({ policy: 'local', trainable: true })
  // An answer that passed through is read later, possibly after later answers.
  const answered = (name?: string) => trajectory!.turns.filter(({ model }) => model === name).length
  expect([undefined, 'adapter', 'remote', 'judge'].map(answered)).toEqual([4, 2, 1, 1])
  expect(trajectory!.turns.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

test('an unknown name is refused with the names that are known and the remedy; "*" stands for any', async () => {
  await using started = await start()
  const { status, error } = await started.open().ask('gpt-4o')
  expect(status).toBe(404)
  expect(error).toMatchObject({ code: 'model_not_found', param: 'model' })
  expect(error!.message).toMatch(/"gpt-4o".*"base", "adapter", "remote", "judge".*aliases/)
  await using tolerant = await start({ aliases: { '*': 'adapter' } })
  expect((await tolerant.open().ask('gpt-4o')).content).toBe('lora-1')
})

test("the session's word on an agent's model outweighs the request's; its policy names the default", async () => {
  await using started = await start()
  const fixed = started.open({ model: 'adapter' })
  expect(fixed.endpoint.model).toBe('adapter')
  expect((await fixed.ask('gpt-4o')).content).toBe('lora-1')
  const [trajectory] = await fixed.session.close()
  expect(trajectory).toMatchObject({ policy: 'adapter', turns: [{ index: 0 }] })
  expect(trajectory!.turns[0]!.model).toBeUndefined()
  const second = started.open({}, { rollout: 'other', policy: 'remote' })
  expect([(await second.ask()).content, (await second.ask('base')).content]).toEqual(['served', 'base'])
  expect(() => started.open({ model: 'none' }, { rollout: 'third' })).toThrow(/"none", which is none of/)
})

test('a name that a session declares is meant: "*" does not stand for it', async () => {
  await using started = await start({ aliases: { '*': 'base', 'gpt-4o': 'adapter' } })
  expect(() => started.open({ trainable: false, model: 'jugde' })).toThrow(
    expect.objectContaining({
      code: 'GATEWAY_MODEL_UNKNOWN',
      message: expect.stringMatching(/Agent "agent".*"jugde".*"base", "adapter", "remote", "judge".*mean "judge"/),
    }),
  )
  expect(() => started.open({ trainable: false, model: '*' })).toThrow(expect.objectContaining({ code: 'GATEWAY_MODEL_UNKNOWN' }))
  expect(started.open({ model: 'gpt-4o' }).endpoint.model).toBe('adapter')
})

test('a default or an alias that names no model is refused before the gateway listens', async () => {
  await expect(start({ defaultModel: 'nobody' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('defaultModel'),
  })
  await expect(start({ aliases: { a: 'nobody' } })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('Alias "a"'),
  })
  await expect(createGateway({ models: {}, seed: 1 })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
})
