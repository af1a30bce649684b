import { createEncoder, type Encoder } from '@aworld-train/chat'
import { expect, test } from 'vitest'
import { countTokens } from './count-tokens.ts'
import { chatCompletions } from './dialects/chat-completions/index.ts'
import { createResponseMemory } from './dialects/responses/memory.ts'
import { createModelTable } from './models/model-table.ts'
import { createSessionState } from './session-state.ts'
import { lookupTool, sessionRequest, startGateway } from './testing/start-gateway.ts'

const callOf = (body: object) => chatCompletions.decode(body, JSON.stringify(body), createResponseMemory())
const signal = new AbortController().signal

async function counting(encoder: Encoder, started: Awaited<ReturnType<typeof startGateway>>) {
  const models = createModelTable({
    models: { tiny: { kind: 'token', engine: started.engine, chat: started.chat } },
    aliases: { '*': 'tiny' },
  })
  const session = createSessionState(sessionRequest(), models)
  const agent = session.agents.get('agent')!
  return (body: object) => countTokens({ models, session, agent, encoder, run: (work) => work(), signal }, callOf(body))
}

test('a long prompt is encoded by the encoder, to the same number of tokens as its call has', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  await using encoder = createEncoder()
  const lengths: number[] = []
  const watched: Encoder = {
    ...encoder,
    async encode(request) {
      const ids = await encoder.encode(request)
      lengths.push(...ids.map(({ length }) => length))
      return ids
    },
  }
  const count = await counting(watched, started)
  const messages = [{ role: 'user', content: 'The quick brown fox. '.repeat(2_000) }]
  const counted = await count({ messages })
  expect(lengths.length).toBe(1)
  expect(counted).toBe(started.chat.createConversation().prepare({ messages: messages as never, tools: [] }).promptTokenIds.length)
  await count({ messages: [{ role: 'user', content: 'short' }] })
  expect(lengths.length).toBe(1)
})

test('what a forced call adds to the prompt is counted', async () => {
  await using started = await startGateway({ say: () => ' {"name": "gold"}}\n</tool_call>' })
  await using encoder = createEncoder()
  const count = await counting(encoder, started)
  const body = { messages: [{ role: 'user', content: 'Gold?' }], tools: [lookupTool] }
  const plain = await count(body)
  expect(await count({ ...body, tool_choice: 'required' })).toBeGreaterThan(plain)
})
