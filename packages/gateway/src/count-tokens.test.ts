import type { RenderWorker } from '@aworld-train/chat'
import { createRenderWorker } from '@aworld-train/chat'
import { expect, test } from 'vitest'
import { countTokens } from './count-tokens.ts'
import { chatCompletions } from './dialects/chat-completions/index.ts'
import { createResponseMemory } from './dialects/responses/memory.ts'
import { createModelTable } from './models/model-table.ts'
import { createSessionState } from './session-state.ts'
import { lookupTool, sessionRequest, startGateway } from './testing/start-gateway.ts'

const callOf = (body: object) => chatCompletions.decode(body, JSON.stringify(body), createResponseMemory())
const signal = new AbortController().signal

async function counting(renderWorker: RenderWorker, started: Awaited<ReturnType<typeof startGateway>>) {
  const models = createModelTable({
    models: { tiny: { kind: 'token', engine: started.engine, chat: started.chat } },
    aliases: { '*': 'tiny' },
  })
  const agent = createSessionState(sessionRequest(), models).agents.get('agent')!
  return (body: object) => countTokens({ models, agent, renderWorker, signal }, callOf(body))
}

test('a long prompt is encoded by the worker, to the same number of tokens as its call has', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  await using worker = createRenderWorker()
  const lengths: number[] = []
  const watched: RenderWorker = {
    ...worker,
    async encode(source, text, stop) {
      const ids = await worker.encode(source, text, stop)
      if (ids) lengths.push(ids.length)
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
  await using worker = createRenderWorker()
  const count = await counting(worker, started)
  const body = { messages: [{ role: 'user', content: 'Gold?' }], tools: [lookupTool] }
  const plain = await count(body)
  expect(await count({ ...body, tool_choice: 'required' })).toBeGreaterThan(plain)
})
