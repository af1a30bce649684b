import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readTaskFile, toAgentTask } from './task-files.ts'

const task = { version: 1 as const, id: 't', hash: 'h', data: {}, dataSource: '' }
const line = 'Files in the working directory: table.csv, "a, b.txt"'

test.each([
  ['a text', 'Sum it.', `Sum it.\n\n${line}`],
  [
    'messages, in what the user said last',
    [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'Hello.' },
      { role: 'user' as const, content: 'Sum it.' },
      { role: 'assistant' as const, content: 'So' },
    ],
    [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello.' },
      { role: 'user', content: `Sum it.\n\n${line}` },
      { role: 'assistant', content: 'So' },
    ],
  ],
  [
    'messages of which the user said none',
    [{ role: 'system' as const, content: 'Sum it.' }],
    [
      { role: 'system', content: 'Sum it.' },
      { role: 'user', content: line },
    ],
  ],
])('the prompt ends with the names of the files: %s', (_, input, prompt) => {
  const setup = { commands: ['true'] }
  expect(toAgentTask({ ...task, input, files: ['/data/table.csv', 'data/a, b.txt'], setup })).toEqual({
    ...task,
    files: ['table.csv', 'a, b.txt'],
    input: prompt,
  })
})

test('a task without files stays as it is', () => {
  expect(toAgentTask({ ...task, input: 'Sum it.' })).toEqual({ ...task, input: 'Sum it.' })
  expect(toAgentTask({ ...task, input: 'Sum it.', files: [] })).toEqual({ ...task, input: 'Sum it.', files: [] })
})

test('a file is read by its name, and by nothing else', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'task-file-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'table.csv'), 'a,b\n')
  const read = (name: string, files?: string[]) => readTaskFile({ id: 't', files }, folder, name)
  expect(String(await read('table.csv', ['table.csv', 'gone.csv']))).toBe('a,b\n')
  expect(String(await read('table.csv', [join(folder, 'table.csv')]))).toBe('a,b\n')
  for (const [name, files, message] of [
    ['other.csv', ['table.csv'], /its files are table\.csv/],
    [join(folder, 'table.csv'), ['table.csv'], /its files are table\.csv/],
    ['table.csv', undefined, /the task has no files/],
    ['gone.csv', ['gone.csv'], /this machine does not have it: ENOENT/],
    ['table.csv', ['table.csv', 'more/table.csv'], /have one name; rename one of them/],
  ] as const)
    await expect(read(name, files && [...files])).rejects.toMatchObject({
      code: 'ENVIRONMENT_START_FAILED',
      message: expect.stringMatching(message),
    })
})
