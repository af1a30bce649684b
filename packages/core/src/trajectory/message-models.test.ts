import { expect, it } from 'vitest'
import type { Trajectory } from '../protocol/episode.ts'
import type { Message } from '../protocol/message.ts'
import type { Turn } from '../protocol/turn.ts'
import { messageModels } from './message-models.ts'

const says = (content: string | null, calls: readonly string[] = []): Message => ({
  role: 'assistant',
  content,
  ...(calls.length > 0 && { toolCalls: calls.map((id) => ({ id, name: 'lookup', arguments: '{}' })) }),
})
const turn = (startedAt: number, message: Message, model?: string) =>
  ({ message, timing: { startedAt, endedAt: startedAt }, ...(model !== undefined && { model }) }) as Partial<Turn> as Turn
const trajectory = (agent: string, ...turns: Turn[]): Trajectory => ({
  version: 2,
  id: agent,
  agent,
  policy: 'local',
  trainable: true,
  startedBy: [],
  timing: null,
  turns,
})

it('names the model of each answer, also where two models said the same', () => {
  const solver = trajectory('solver', turn(1, says('79')), turn(3, says(null, ['c1'])), turn(5, says('79')))
  const critic = trajectory('critic', turn(2, says('79'), 'judge'), turn(4, says('', ['c2']), 'judge'))
  const messages: Message[] = [
    { role: 'user', content: 'Gold?' },
    says('79'),
    says('79'),
    says('', ['c1']),
    { role: 'tool', content: '79', toolCallId: 'c1' },
    says(null, ['c2']),
    says('79'),
    says('changed by a hook'),
  ]
  expect(messageModels({ messages, trajectories: [critic, solver] })).toEqual([null, null, 'judge', null, null, 'judge', null, null])
})
