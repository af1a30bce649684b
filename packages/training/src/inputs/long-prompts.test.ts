import { fileURLToPath } from 'node:url'
import { loadChatModel } from '@aworld-train/chat'
import { expect, it } from 'vitest'
import { loadDataset } from '../dataset/load-dataset.ts'
import { findLongPrompts } from './long-prompts.ts'

const directory = fileURLToPath(new URL('../../../../examples/periodic-table/model', import.meta.url))
const chat = await loadChatModel({ directory })
const lengthOf = (content: string) =>
  chat.createConversation().prepare({ messages: [{ role: 'user', content }], tools: [] }).promptTokenIds.length

it('finds the prompts that leave no room for an answer, the longest first, to the token', async () => {
  const prompts = ['gold', 'gold '.repeat(40), 'gold '.repeat(30)]
  const { tasks } = await loadDataset(prompts.map((prompt, id) => ({ id, prompt, answer: 'Au' })))
  const [, longest, middle] = prompts.map(lengthOf) as [number, number, number]

  expect(findLongPrompts(tasks, { chat, contextLength: longest + 1 })).toBeNull()
  const one = findLongPrompts(tasks, { chat, contextLength: longest })
  expect(one?.tasks.map(({ id }) => id)).toEqual(['1'])
  expect(one?.error).toMatchObject({
    code: 'POLICY_CONTEXT_OVERFLOW',
    message: expect.stringMatching(`1 of 3 prompts leaves .*task "1" has ${longest} tokens, .*model ${longest}\\. Shorten`),
  })
  expect(findLongPrompts(tasks, { chat, contextLength: middle })?.tasks.map(({ id }) => id)).toEqual(['1', '2'])
})

it('counts the messages of a conversation together', async () => {
  const turn = { role: 'user', content: 'gold '.repeat(20) }
  const { tasks } = await loadDataset([{ prompt: [turn, { role: 'assistant', content: 'Au' }, turn], answer: 'Au' }])
  const contextLength = lengthOf(turn.content) + 10
  expect(findLongPrompts(tasks, { chat, contextLength })?.tasks).toEqual(tasks)
})
