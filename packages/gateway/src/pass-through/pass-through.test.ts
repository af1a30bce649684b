import { createHash } from 'node:crypto'
import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { logprob, promptOf } from '../testing/chat-server.ts'
import { rawPost, talk } from '../testing/raw-socket.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { openaiClient, post, sessionRequest, until } from '../testing/start-gateway.ts'

const question = { role: 'user' as const, content: 'Atomic number of gold?' }
const codes = (text: string) => Int32Array.from(Array.from(text, (character) => character.charCodeAt(0)))

for (const stream of [false, true]) {
  test(`a conversation is recorded with the engine's own ids, each turn as the continuation of the last (stream: ${stream})`, async () => {
    await using started = await startChatGateway((_, index) => ['79.', 'Au.'][index]!)
    const session = started.gateway.open(sessionRequest())
    const client = openaiClient(session.endpoint('agent')).chat.completions
    const ask = async (messages: { role: 'user' | 'assistant'; content: string }[]) => {
      const request = { model: 'policy', messages }
      const { choices } = stream ? await client.stream(request).finalChatCompletion() : await client.create(request)
      return choices[0]!.message.content!
    }
    const first = await ask([question])
    const history = [question, { role: 'assistant' as const, content: first }, { role: 'user' as const, content: 'Its symbol?' }]
    expect([first, await ask(history)]).toEqual(['79.', 'Au.'])

    const [{ turns, trainable }] = (await session.close()) as [Trajectory]
    expect(trainable).toBe(true)
    expect(turns).toMatchObject([
      {
        parent: null,
        branchReasons: ['root'],
        promptTokenIds: codes(promptOf([question])),
        completionTokenIds: codes('79.\0'),
        delivered: 'delivered',
        messagesDelta: [question],
        message: { role: 'assistant', content: '79.' },
        capture: { tokens: 'engine-reported', logprobs: 'temperature' },
        weightVersions: [{ fromToken: 0, version: 0 }],
        usage: { promptTokens: promptOf([question]).length, completionTokens: 4, cachedTokens: 0 },
      },
      { parent: 0, branchReasons: [], promptTokenIds: codes(promptOf(history)), messagesDelta: [{ role: 'user', content: 'Its symbol?' }] },
    ])
    expect(turns[0]!.rolloutLogprobs).toEqual(Float32Array.from(codes('79.\0'), logprob))
    expect(started.gateway.counts()).toMatchObject({ calls: 2, failures: 0, continuations: 1, branches: { root: 1 }, inFlight: 0 })
    expect(started.engine.inFlight()).toBe(0)
  })
}

test('a turn whose decoding a request constrained is recorded with logprobs of another kind, which training refuses', async () => {
  await using started = await startChatGateway(() => '79.')
  const session = started.gateway.open(sessionRequest())
  const format = { response_format: { type: 'json_object' } }
  await post(session.endpoint('agent'), { model: 'policy', messages: [question], ...format })
  await post(session.endpoint('agent'), { model: 'policy', messages: [question] })
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ capture }) => capture.logprobs)).toEqual(['processed', 'temperature'])
})

test('bytes reach the engine as they were sent, with the members of the trainer before the last brace, and come back untouched', async () => {
  const answers: string[] = []
  await using started = await startChatGateway(() => 'Ja, „ü“ \u2028 😀')
  const session = started.gateway.open(sessionRequest())
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  for (const body of [
    '{ "model" : "policy","messages":[{"role":"user","content":"\\u00fc 1.0 1e400 \\ud800"}],"zeta":{"b":1.0,"a":12345678901234567890},  "stream":false }\r\n ',
    '{"messages":[{"role":"user","content":"\\"model\\":\\"other\\" \\\\"}],"model":"policy","temperature":0.1}',
  ]) {
    const { status, text, headers } = await post(session.endpoint('agent'), body)
    expect(status).toBe(200)
    expect(headers.get('content-length')).toBe(`${Buffer.byteLength(text)}`)
    answers.push(text)
    const { raw } = started.server.calls.at(-1)!
    const end = body.trimEnd().length - 1
    expect(sha(raw.slice(0, end))).toBe(sha(body.slice(0, end)))
    expect(raw.slice(end)).toBe(',"model":"served","max_tokens":512,"temperature":1,"logprobs":true,"return_token_ids":true}')
  }
  const direct = await fetch(`${started.server.url}/v1/chat/completions`, { method: 'POST', body: started.server.calls.at(-1)!.raw })
  expect(sha(answers.at(-1)!)).toBe(sha(await direct.text()))
  await session.close()
})

test('a stream comes through as the engine wrote it, each event when it is there', async () => {
  let halfWay: { events: number; ends: 'hang' } | undefined = { events: 3, ends: 'hang' }
  await using started = await startChatGateway(() => ({ text: 'Ja, „ü“ \u2028 😀', ...(halfWay && { halfWay }) }))
  const session = started.gateway.open(sessionRequest())
  const path = `${new URL(session.endpoint('agent').baseUrl).pathname}/chat/completions`
  const { socket, received } = talk(started.gateway.url, rawPost(path, JSON.stringify({ messages: [question], stream: true })))
  await until(() => [...received().matchAll(/^data: /gm)].length === 3)
  expect(started.server.inFlight()).toBe(1)
  socket.destroy()
  await until(() => started.server.inFlight() === 0)
  halfWay = undefined
  const { text, headers } = await post(session.endpoint('agent'), { messages: [question], stream: true })
  const direct = await fetch(`${started.server.url}/v1/chat/completions`, { method: 'POST', body: started.server.calls.at(-1)!.raw })
  // Only the gateway asks for the usage, so the client does not get it.
  const events = (await direct.text()).split(/(?<=\n\n)/)
  expect(text).toBe(events.filter((event) => !event.includes('"usage"')).join(''))
  expect(events).toHaveLength(text.split(/(?<=\n\n)/).length + 1)
  expect(headers.get('content-type')).toBe(direct.headers.get('content-type'))
  await session.close()
})

test('an agent may only shorten a completion', async () => {
  await using started = await startChatGateway(() => 'x')
  const session = started.gateway.open(sessionRequest())
  for (const limits of [{ max_tokens: 7 }, { max_tokens: 9000 }, { max_tokens: 20, max_completion_tokens: 5 }, { max_tokens: 'many' }]) {
    await post(session.endpoint('agent'), { messages: [question], ...limits })
  }
  expect(started.server.calls.map(({ body }) => body['max_tokens'])).toEqual([7, 512, 5, 512])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ sampling }) => sampling.maxTokens)).toEqual([7, 512, 5, 512])
})

test('two calls with equal prompts are two calls', async () => {
  await using started = await startChatGateway((_, index) => `answer ${index}`)
  const session = started.gateway.open(sessionRequest())
  await Promise.all([1, 2, 3].map(() => post(session.endpoint('agent'), { messages: [question] })))
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ message }) => message.content).sort()).toEqual(['answer 0', 'answer 1', 'answer 2'])
  expect(turns.map(({ parent }) => parent)).toEqual([null, null, null])
})

test('versions: one is a span, several are mixed from the lowest', async () => {
  await using started = await startChatGateway((_, index) => {
    if (index === 1) started.engine.setWeightVersion(3)
    return 'x'
  })
  started.engine.setWeightVersion(1)
  const session = started.gateway.open(sessionRequest())
  for (let call = 0; call < 3; call++) await post(session.endpoint('agent'), { messages: [question] })
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.map(({ weightVersions, mixedVersions }) => [weightVersions, mixedVersions])).toEqual([
    [[{ fromToken: 0, version: 1 }], undefined],
    [[{ fromToken: 0, version: 1 }], { lowest: 1, highest: 3 }],
    [[{ fromToken: 0, version: 3 }], undefined],
  ])
})

test('a budget of tokens counts what the engine reported: the call that would pass it is cut, later ones are refused', async () => {
  await using started = await startChatGateway(() => '12345')
  const session = started.gateway.open(sessionRequest({ maxSessionTokens: 10 }))
  const statuses: number[] = []
  for (let call = 0; call < 3; call++) statuses.push((await post(session.endpoint('agent'), { messages: [question] })).status)
  expect(statuses).toEqual([200, 200, 400])
  expect(started.server.calls.map(({ body }) => body['max_tokens'])).toEqual([10, 4])
  expect(session.failure()).toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'token-limit' } })
  await session.close()
})

test('closing a session awaits what is being recorded and made durable', async () => {
  await using started = await startChatGateway(() => 'x')
  const durable: number[] = []
  const session = started.gateway.open(
    sessionRequest({
      onTurn: async (_agent, { index }) => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        durable.push(index)
      },
    }),
  )
  const endpoint = session.endpoint('agent')
  await Promise.all([post(endpoint, { messages: [question] }), post(endpoint, { messages: [question] })])
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns).toHaveLength(2)
  expect(durable.toSorted()).toEqual([0, 1])
})

test('a client that has its answer is not refused for the record that is still being written', async () => {
  const written = Promise.withResolvers<void>()
  await using started = await startChatGateway(() => 'x')
  const session = started.gateway.open(sessionRequest({ maxCallsInFlight: 1, onTurn: () => written.promise }))
  const ask = () => post(session.endpoint('agent'), { messages: [question] })
  for (const _ of [1, 2, 3]) expect((await ask()).status).toBe(200)
  written.resolve()
  const [{ turns }] = (await session.close()) as [Trajectory]
  expect(turns.length).toBe(3)
})
