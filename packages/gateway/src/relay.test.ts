import type { PolicySession, SessionRequest, Trajectory, Turn } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway } from './gateway.ts'
import { startChatGateway } from './testing/start-chat-gateway.ts'
import { sessionRequest, until } from './testing/start-gateway.ts'
import { say, startThirdParty } from './testing/third-party.ts'

const question = [{ role: 'user', content: 'Is 79 right?' }]
const bodies = {
  'chat/completions': { messages: question, user: 'u-1' },
  messages: { max_tokens: 64, messages: question, service_tier: 'auto' },
}
type Path = keyof typeof bodies
const paths = Object.keys(bodies) as Path[]

/** A gateway in front of a server of each kind, which answers "Yes". */
const kinds = {
  async chat() {
    return await startChatGateway(() => 'Yes')
  },
  async frozen() {
    const party = await startThirdParty((call, response) => say(call, response, 'Yes'))
    const gateway = await createGateway({
      models: { policy: { kind: 'frozen', baseUrl: party.url, dialect: 'chat-completions', model: 'judge', apiKey: 'k-12345678' } },
      seed: 1,
    })
    return {
      gateway,
      async [Symbol.asyncDispose]() {
        await gateway.close()
        await party[Symbol.asyncDispose]()
      },
    }
  },
}
type Kind = keyof typeof kinds

const requestOf = (kind: Kind, overrides: Partial<SessionRequest> = {}) =>
  sessionRequest({ agents: [{ name: 'agent', trainable: kind === 'chat', model: 'policy' }], ...overrides })

async function ask(session: PolicySession, path: Path, stream = false) {
  const { baseUrl } = session.endpoint('agent')
  const response = await fetch(`${baseUrl}/${path}`, { method: 'POST', body: JSON.stringify({ model: 'policy', stream, ...bodies[path] }) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Leaves out what differs from run to run. */
const steady = (text: string) =>
  text.replaceAll(/(chatcmpl-|msg_|call_)?[0-9a-f]{12}-(f?\d)/g, '$1ID-$2').replaceAll(/"created":\d+/g, '"created":0')

function steadyTurn({ timing, ...turn }: Turn) {
  expect(timing.endedAt).toBeGreaterThanOrEqual(timing.startedAt)
  const lists = {
    promptTokenIds: turn.promptTokenIds.length,
    completionTokenIds: [...turn.completionTokenIds],
    rolloutLogprobs: [...turn.rolloutLogprobs],
  }
  return JSON.stringify({ ...turn, ...lists })
}

for (const kind of Object.keys(kinds) as Kind[]) {
  for (const path of paths) {
    for (const stream of [false, true]) {
      test(`what is sent, asked and recorded stays (${kind}, ${path}, stream: ${stream})`, async () => {
        await using started = await kinds[kind]()
        const session = started.gateway.open(requestOf(kind))
        const { status, text, headers } = await ask(session, path, stream)
        const shown = ['content-type', 'cache-control', 'content-length', 'transfer-encoding'].flatMap((name) => {
          // The id of an answer, whose length varies, is part of its length.
          const value = headers.get(name)
          return value === null ? [] : [`${name}: ${name === 'content-length' && value === `${Buffer.byteLength(text)}` ? 'exact' : value}`]
        })
        const [{ turns }] = (await session.close()) as [Trajectory]
        expect([status, ...shown, steady(text), ...turns.map(steadyTurn)].join('\n')).toMatchSnapshot()
      })
    }
  }
}

for (const kind of Object.keys(kinds) as Kind[]) {
  test(`a call that cannot be made durable fails, and its turn is abandoned (${kind})`, async () => {
    await using started = await kinds[kind]()
    const onTurn = () => Promise.reject(new Error('disk full'))
    const session = started.gateway.open(requestOf(kind, { onTurn }))
    const { status, text } = await ask(session, 'chat/completions')
    // The answer of a chat engine has been sent before its turn is read.
    expect([status, text.includes('disk full')]).toEqual(kind === 'chat' ? [200, false] : [500, true])
    const [{ turns }] = (await session.close()) as [Trajectory]
    expect(turns.map(({ delivered }) => delivered)).toEqual(['abandoned'])
    expect(session.failure()).toMatchObject({ code: 'STORE_FAILED', message: 'disk full' })
    expect(started.gateway.counts()).toMatchObject({ calls: 1, failures: 1, inFlight: 0 })
  })
}

test('an answer of a third party ends only when its turn is durable', async () => {
  await using started = await kinds.frozen()
  const { promise, resolve } = Promise.withResolvers<void>()
  const recorded: Turn[] = []
  const onTurn = async (_: string, turn: Turn) => {
    recorded.push(turn)
    await promise
  }
  const session = started.gateway.open(requestOf('frozen', { onTurn }))
  let ended = false
  const answer = ask(session, 'chat/completions').then((result) => {
    ended = true
    return result
  })
  await until(() => recorded.length === 1)
  expect([ended, recorded[0]!.delivered]).toEqual([false, 'pending'])
  resolve()
  expect((await answer).status).toBe(200)
  await until(() => recorded[0]!.delivered === 'delivered')
  await session.close()
})
