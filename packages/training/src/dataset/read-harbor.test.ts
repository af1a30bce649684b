import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadDataset } from './load-dataset.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'harbor-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const toml = 'schema_version = "1.1"\n[metadata]\ndifficulty = "easy"\n[verifier]\ntimeout_sec = 120.0\n[environment]\ncpus = 1\n'

function write(task: string, files: Readonly<Record<string, string | Buffer>>): void {
  const all = {
    'task.toml': toml,
    'instruction.md': `Solve ${task}.\n`,
    'tests/test.sh': 'exit 0\n',
    'environment/Dockerfile': 'FROM ubuntu:24.04\n',
    ...files,
  }
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, task, path)), { recursive: true })
    writeFileSync(join(folder, task, path), content)
  }
}

test('tasks are rows: the instruction, the files that are copied, and the tests for the reward alone', async () => {
  write('one', {
    'environment/Dockerfile':
      '# A comment\nFROM python:3.13-slim\nWORKDIR /app\nCOPY data/ data/\nCOPY a.txt \\\n  b.txt ./\nCOPY a.txt named.txt\n',
    'environment/data/deep/c.csv': 'x,y\n',
    'environment/a.txt': 'a',
    'environment/b.txt': 'b',
    'tests/test_one.py': 'assert True\n',
    'solution/solve.sh': 'echo secret\n',
  })
  write('two', { 'task.toml': `${toml}[task]\nname = "fruit/two"\n` })
  const { tasks, answers, problems } = await loadDataset(folder)
  expect(problems).toEqual([])
  expect(tasks).toMatchObject([
    {
      id: 'one',
      input: 'Solve one.\n',
      setup: { files: { 'data/deep/c.csv': 'x,y\n', 'a.txt': 'a', 'b.txt': 'b', 'named.txt': 'a' } },
      dataSource: 'harbor',
      extraInfo: { difficulty: 'easy' },
    },
    { id: 'fruit/two' },
  ])
  expect(answers.get('one')?.groundTruth).toEqual({ tests: { 'test.sh': 'exit 0\n', 'test_one.py': 'assert True\n' } })
  expect(JSON.stringify(tasks)).not.toContain('secret')
  expect((await loadDataset(join(folder, 'one'))).tasks).toHaveLength(1)
})

test.each<[string, Readonly<Record<string, string | Buffer>>, string]>([
  [
    'a command of its image',
    { 'environment/Dockerfile': 'FROM ubuntu:24.04\nRUN apt-get install -y gcc\n' },
    'it needs an image of its own, for "RUN apt-get',
  ],
  ['another base', { 'environment/Dockerfile': 'FROM ghcr.io/fruit/base:1\n' }, 'it needs an image of its own, for "FROM ghcr.io'],
  ['an image', { 'task.toml': `${toml}docker_image = "fruit/base"\n` }, 'it needs the image fruit/base'],
  [
    'several containers',
    { 'environment/docker-compose.yaml': 'services: {}\n' },
    'it needs the containers of environment/docker-compose.yaml',
  ],
  [
    'a path of its image',
    { 'environment/Dockerfile': 'FROM ubuntu\nWORKDIR /app\n', 'instruction.md': 'Write /app/out.txt.' },
    'it names files below /app',
  ],
  ['a file that is no text', { 'environment/photo.jpg': Buffer.from([0xff, 0xd8]) }, '"photo.jpg" is no text'],
  [
    'a file that is not there',
    { 'environment/Dockerfile': 'FROM ubuntu\nCOPY fig.txt .\n' },
    'copies "fig.txt", which is not in environment/',
  ],
  [
    'a way out',
    { 'environment/Dockerfile': 'FROM ubuntu\nWORKDIR /app\nCOPY a.txt /etc/a.txt\n', 'environment/a.txt': 'a' },
    'out of /app',
  ],
  ['broken configuration', { 'task.toml': 'a = [' }, 'Invalid TOML'],
])('a task with %s is named, and the others are read', async (_, files, reason) => {
  write('odd', files)
  write('plain', {})
  const { tasks, problems, warnings } = await loadDataset(folder)
  expect(tasks.map(({ id }) => id)).toEqual(['plain'])
  expect(problems).toEqual([])
  expect(warnings).toEqual([expect.stringContaining('the task "odd" is left out: ')])
  expect(warnings[0]).toContain(reason)
  rmSync(join(folder, 'plain'), { recursive: true })
  expect((await loadDataset(folder)).problems.map(({ message }) => message)).toEqual([expect.stringContaining(reason)])
})
