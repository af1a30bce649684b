import { readFileSync } from 'node:fs'
import { runOnce } from 'aworld-train/vitest'
import { expect, test } from 'vitest'
import { stock } from '../agent.ts'
import training from '../aworld-train.config.ts'

const task = { prompt: 'How many figs are in Oslo?', answer: String(stock.Oslo?.figs) }
const lookUp = { toolCalls: [{ name: 'stock', arguments: { item: 'figs', city: 'Oslo' } }] }

test('an agent that asks its tool earns the reward, and can be trained', async () => {
  // What the policy says, call by call. Leave the script out, and a model is sampled.
  const episode = await runOnce(training, { task, script: [lookUp, task.answer] })
  expect(episode).toCall('stock', { item: 'figs', city: expect.any(String) })
  expect(episode).toEarn(1)
  expect(episode).toStayWithin({ turns: 2, toolCalls: 1 })
  expect(episode).toBeTrainable()
})

test('the reward is for the right number alone', async () => {
  const script = [lookUp, `${task.answer} or 3`]
  expect(await runOnce(training, { task, script })).toEarn(0)
})

test('every task has the answer that the tool gives', () => {
  for (const file of ['train', 'test']) {
    const rows = readFileSync(new URL(`../data/${file}.jsonl`, import.meta.url), 'utf8')
    for (const row of rows.trim().split('\n')) {
      const { prompt, answer } = JSON.parse(row)
      const [, item = '', city = ''] = /^How many (\w+) are in (\w+)\?$/.exec(prompt) ?? []
      expect(answer, prompt).toBe(String(stock[city]?.[item]))
    }
  }
})
