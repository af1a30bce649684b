import { expect, test } from 'vitest'
import { toChannelTask } from './to-channel-task.ts'

const prompt = [{ role: 'user', content: 'Which metal has the number 79?' }]
const train = { partition: 'train' } as const

test('a row is a task without its answer, and the answer', () => {
  const row = {
    prompt,
    dataSource: 'metals',
    rewardModel: { style: 'rule', ground_truth: 'gold' },
    extraInfo: { split: 'train', index: 3, level: 2, note: null },
    index: 3,
    columns: { hint: 'It is gold.', data: { look: 'shiny' }, uid: 'group-1', session_id: 0, agent_name: 'gaia_agent' },
  }
  const { task, answer } = toChannelTask(row, train)
  expect(task).toMatchObject({ input: prompt, dataSource: 'metals', data: { look: 'shiny' } })
  expect(task.extraInfo).toEqual({ split: 'train', index: 3, level: 2, hint: 'It is gold.' })
  expect(task.id).toMatch(/^train-3-[0-9a-f]{6}$/)
  expect(JSON.stringify({ ...task, extraInfo: {} })).not.toContain('gold')
  expect(answer).toEqual({ version: 1, taskId: task.id, groundTruth: 'gold' })
  expect(toChannelTask(row, { partition: 'val' }).task.id).toMatch(/^test-3-/)
  expect(toChannelTask({ ...row, columns: { id: 'm-79' } }, train).task.id).toBe('m-79')
})

test('a row that carries its task whole is that task', () => {
  const task = {
    version: 1 as const,
    id: 'm-79',
    hash: 'h',
    input: 'Which?',
    data: { nested: [{ a: 1 }, {}] },
    dataSource: 'metals',
    extraInfo: { level: 2 },
  }
  const extraInfo = { index: 0, split: 'train', task_json: JSON.stringify(task) }
  const read = toChannelTask({ prompt, rewardModel: { ground_truth: ['gold', 1] }, extraInfo }, train)
  expect(read).toEqual({ task, answer: { version: 1, taskId: 'm-79', groundTruth: ['gold', 1] } })
})

test.each([
  ['without a user', { prompt: [{ role: 'system', content: 'Be brief.' }] }, /no message of the user/],
  ['of an unknown role', { prompt: [{ role: 'oracle', content: 'x' }] }, /role "oracle"/],
  ['with a task that is no JSON', { prompt, extraInfo: { task_json: '{' } }, /task_json is not JSON/],
  ['with a task of another shape', { prompt, extraInfo: { task_json: '{"version":2}' } }, /task_json, version/],
])('a row %s is refused by name', (_name, row, message) => {
  expect(() => toChannelTask(row, train)).toThrow(
    expect.objectContaining({ code: 'ROLLOUT_INVALID', message: expect.stringMatching(message) }),
  )
})
