import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { stock } from '../agent.ts'
import { exactAnswer } from '../reward.ts'

test('the reward is 1 for the right number alone', () => {
  assert.equal(exactAnswer('stock', ' 12\n', '12'), 1)
  assert.equal(exactAnswer('stock', '13', '12'), 0)
  assert.equal(exactAnswer('stock', '12 or 13', '12'), 0)
})

test('every task has the answer that the tool gives', () => {
  for (const file of ['train', 'test']) {
    const rows = readFileSync(new URL(`../data/${file}.jsonl`, import.meta.url), 'utf8')
    for (const row of rows.trim().split('\n')) {
      const { prompt, answer } = JSON.parse(row)
      const [, item = '', city = ''] = /^How many (\w+) are in (\w+)\?$/.exec(prompt) ?? []
      assert.equal(answer, String(stock[city]?.[item]), prompt)
    }
  }
})
