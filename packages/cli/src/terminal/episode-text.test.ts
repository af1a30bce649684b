import { stripVTControlCharacters } from 'node:util'
import type { Message } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { renderEpisode } from './episode-text.ts'

it('labels each answer with the model that gave it', () => {
  const messages: Message[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Gold?' },
    { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'lookup', arguments: '{"element":"gold"}' }] },
    { role: 'tool', content: '79', toolCallId: 'c1' },
    { role: 'assistant', content: '79' },
    { role: 'assistant', content: 'That is right.' },
  ]
  const models = [null, null, null, null, null, 'large-judge']
  expect(`\n${stripVTControlCharacters(renderEpisode({ messages, models, reward: 1 }))}`).toMatchInlineSnapshot(`
    "
    task        Gold?
    policy      lookup({"element":"gold"})
                → 79
    policy      79
    large-judge That is right.
    reward      1"
  `)
  expect(stripVTControlCharacters(renderEpisode({ messages: messages.slice(4), reward: null }))).toMatchInlineSnapshot(`
    "policy  79
    policy  That is right.
    reward  not scored"
  `)
})

it('breaks lines at spaces where a terminal would cut words', () => {
  const messages: Message[] = [{ role: 'assistant', content: 'That is right, as everybody knows by now.' }]
  expect(stripVTControlCharacters(renderEpisode({ messages, reward: 1, columns: 30 }))).toMatchInlineSnapshot(`
    "policy  That is right, as
            everybody knows by
            now.
    reward  1"
  `)
})

it('gives a terminal nothing to obey', () => {
  const messages: Message[] = [
    { role: 'user', content: 'Gold?' },
    { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'look\u001bcup', arguments: '{"a":"\u009b2J"}' }] },
    { role: 'tool', content: '\u001b]0;title\u0007', toolCallId: 'c1' },
    { role: 'assistant', content: '\u001b[2J\u0008\u007f 7\u202e9' },
  ]
  const shown = stripVTControlCharacters(renderEpisode({ messages, reward: 1 }))
  expect(shown).not.toMatch(/[^\P{Cc}\n]|\u202e/u)
  expect(shown).toContain('␛[2J␈␡ 7\ufffd9')
})
