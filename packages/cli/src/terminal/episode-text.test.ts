import { stripVTControlCharacters } from 'node:util'
import type { Message, Trajectory, Turn } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { renderEpisode, renderInvocations } from './episode-text.ts'

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

it('shows invocations as a tree with the turns of each, and what started it', () => {
  const turn = (messagesDelta: readonly Message[], message: Message, at: number, model?: string) =>
    ({
      index: 0,
      messagesDelta,
      message,
      toolCalls: message.toolCalls ?? [],
      timing: { startedAt: at, endedAt: at + 1 },
      ...(model !== undefined && { model }),
    }) as Partial<Turn> as Turn
  const trajectory = (id: string, startedBy: Trajectory['startedBy'], ...turns: Turn[]): Trajectory => {
    const timing = turns[0]?.timing ?? null
    return { version: 2, id, agent: id.split(':')[0]!, policy: 'policy', trainable: true, startedBy, timing, turns }
  }
  const ask = { id: 'c1', name: 'reader\u001b[2J', arguments: '{"task":"read"}' }
  const says = (content: string): Message => ({ role: 'assistant', content })
  const asks = (content: string): Message => ({ role: 'user', content })
  const trajectories = [
    trajectory('plan', [], turn([asks('Go.')], { role: 'assistant', content: null, toolCalls: [ask] }, 1)),
    trajectory(
      'reader\u001b[2J:plan.0.0',
      [{ trajectory: 'plan', turn: 0, toolCall: 'c1' }],
      turn([asks('read')], says('It is about figs and about where they grow.'), 3, 'judge'),
    ),
    trajectory('write', [{ trajectory: 'plan', turn: 0, toolCall: null }], turn([asks('figs')], says('Figs.'), 5)),
    trajectory(
      'late',
      ['plan', 'write'].map((from) => ({ trajectory: from, turn: 0, toolCall: null })),
    ),
  ]
  expect(`\n${stripVTControlCharacters(renderInvocations({ trajectories, answer: null, reward: 1 }, 42))}`).toMatchInlineSnapshot(`
    "
    plan  1 turn
      task    Go.
      policy  reader␛[2J({"task":"read"})
      reader␛[2J:plan.0.0  1 turn, asked for
        by plan, turn 0
        task    read
        judge   It is about figs and about
                where they grow.
    write  1 turn, after plan
      task    figs
      policy  Figs.
    late  0 turns, after plan and write
    reward  1"
  `)
  const joined = (answer: string) =>
    stripVTControlCharacters(renderInvocations({ trajectories, answer, reward: 1 }))
      .split('\n')
      .slice(-2)
  expect(joined('made of several answers')).toEqual(['answer  made of several answers', 'reward  1'])
  const written = trajectories.flatMap(({ turns }) => turns).findLast(({ message }) => message.content)!.message.content!
  expect(joined(written)).not.toContain(`answer  ${written}`)
})
