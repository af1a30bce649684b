import { expect, test } from 'vitest'
import { InvocationJournal } from './invocation-journal.ts'

const journal = () => new InvocationJournal(['planner', 'reader'])

test('says of each invocation what started it, when it worked and whether it answered', () => {
  const invocations = journal()
  const planner = invocations.start('planner')
  const reader = invocations.start('reader', { place: '0.0.1', startedBy: [{ trajectory: planner.id, toolCall: 'c' }] })
  invocations.end(reader.id, true)
  const [first, second] = invocations.records()
  expect(first).toMatchObject({ id: 'planner', agent: 'planner', startedBy: [], answered: false })
  expect(second).toMatchObject({ id: 'reader:planner.0.1', startedBy: [{ trajectory: 'planner', toolCall: 'c' }], answered: true })
  expect(first!.timing!.endedAt).toBeGreaterThanOrEqual(second!.timing!.endedAt)
  invocations.end(planner.id, true)
  expect(invocations.records()[0]!.answered).toBe(false)
})

test('a place of the program is one invocation however often it is asked for, and may then be started', () => {
  const invocations = journal()
  expect(invocations.at('reader', 'chapter-1')).toEqual(invocations.at('reader', 'chapter-1'))
  expect(invocations.at('reader').id).toBe('reader')
  expect(invocations.start('reader').id).toBe('reader')
  expect(invocations.records().map(({ id, timing }) => [id, timing === null])).toEqual([
    ['reader:chapter-1', true],
    ['reader', false],
  ])
})

test('of the id of a tool call counts what the model did, whatever attempt made it', () => {
  const ids = ['call_0123456789ab_0_1', 'call_ba9876543210_0_1'].map((id) => journal().at('reader', id).id)
  expect(ids).toEqual(['reader:0.1', 'reader:0.1'])
  const invocations = journal()
  invocations.at('reader', 'call_0123456789ab_0_1')
  expect(invocations.records()[0]!.startedBy).toEqual([{ trajectory: null, toolCall: 'call_0123456789ab_0_1' }])
  expect(invocations.at('reader', 'call_0123456789ab_0_1').id).toBe('reader:0.1')
  expect(() => invocations.at('reader', 'call_ba9876543210_0_1')).toThrow(
    'The tool calls call_0123456789ab_0_1 and call_ba9876543210_0_1 both ask for the invocation "reader:0.1"; put the place of each caller before it, such as context.policy("reader", "first.0.1").',
  )
  expect(invocations.at('reader', 'toolu_01ABC').id).toBe('reader:toolu_01ABC')
})

test.each([
  [
    'two invocations of one id',
    { place: '2' },
    'The invocation "reader:2" was started before; give each start of agent "reader" a place of its own.',
  ],
  ['a place with a slash', { place: 'a/b' }, 'is "a/b"; give it 1 to 256 letters, digits, ".", "_", ":" and "-".'],
  ['a place of 257 characters', { place: 'x'.repeat(257) }, 'is 257 characters long; give it 1 to 256 letters'],
])('refuses %s', (_, options, message) => {
  const invocations = journal()
  invocations.start('reader', { place: '2' })
  const start = () => invocations.start('reader', options)
  expect(start).toThrow(message)
  expect(start).toThrow(expect.objectContaining({ code: 'AGENT_INVALID' }))
})
