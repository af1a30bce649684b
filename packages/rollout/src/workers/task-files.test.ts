import { createHash } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileBelow, filesPath, type WorkerFile } from '@aworld-train/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rolloutRequest } from '../testing/rollout-fixtures.ts'
import { createFetchedFiles } from './fetched-files.ts'
import { startCoordinator, token } from './start-workers.test-support.ts'
import { createWorkerServer } from './worker-server.ts'

let folder: string
/** Folders of the coordinator and of a worker, as on two machines. */
let [here, there] = ['', '']
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'task-files-'))
  ;[here, there] = [join(folder, 'here'), join(folder, 'there')]
  for (const each of [here, there]) await mkdir(join(each, 'data'), { recursive: true })
  await writeFile(join(here, 'data/table.csv'), 'a,b\n1,2\n')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A coordinator whose agent reads its task's files. `seen` has what it reads, and the worker's path of the file. */
async function startReading(fileOf = (path: string): string | null => resolve(here, path)) {
  const seen: string[][] = []
  const paths = new Map<string, readonly string[]>()
  const requests: string[] = []
  const coordinator = await startCoordinator({
    fileOf,
    async agent(ask, { rollout, task, file }) {
      for (const [index, name] of (task.files ?? []).entries()) {
        const path = paths.get(rollout)![index]!
        expect(name).toBe(basename(path))
        seen.push([path, await file(name).then(String, ({ cause }) => cause.code)])
      }
      return ask()
    },
  })
  const { pool } = coordinator
  const { sendFile } = pool
  let answer = sendFile
  pool.sendFile = (request, response) => {
    requests.push(request.url!)
    return answer(request, response)
  }
  return {
    coordinator,
    seen,
    requests,
    sendFile,
    work: (options: Parameters<typeof coordinator.work>[0]) =>
      coordinator.work({
        ...options,
        wrap: ({ execute, ...executor }) => ({
          ...executor,
          execute(assignment, control) {
            paths.set(assignment.key, assignment.task.files ?? [])
            return execute(assignment, control)
          },
        }),
      }),
    replaceAnswer: (other: typeof sendFile) => {
      answer = other
    },
    run: (key: string, ...files: string[]) => {
      const request = rolloutRequest(key)
      return coordinator.run({ ...request, task: { ...request.task, files } })
    },
  }
}

const failed = (message: RegExp) => ({
  status: 'done',
  episode: { stopReason: 'failed', reward: null, error: { code: 'ENVIRONMENT_START_FAILED', message: expect.stringMatching(message) } },
})
const done = { status: 'done', episode: { reward: 1, attempt: 0 } }

test('an agent on another machine reads the files of its task under their names, and each is fetched once', async () => {
  const { coordinator, seen, requests, run, work } = await startReading()
  await using _ = coordinator
  await chmod(join(here, 'data/table.csv'), 0o755)
  const worker = work({ baseDirectory: there, slots: 3 })
  for (const state of await Promise.all(['a', 'b', 'c'].map((key) => run(key, 'data/table.csv')))) expect(state).toMatchObject(done)
  expect(await run('absolute', join(here, 'data/table.csv'))).toMatchObject(done)
  // This machine plays both, and the absolute path leads to the file there.
  expect(seen[3]).toEqual([join(here, 'data/table.csv'), 'a,b\n1,2\n'])
  const [[path = '']] = seen as [string[]]
  expect(seen.slice(0, 3)).toEqual(Array(3).fill([path, 'a,b\n1,2\n']))
  expect([basename(path), path.startsWith(folder), (await stat(path)).mode & 0o777]).toEqual(['table.csv', false, 0o755])
  expect(requests).toHaveLength(1)
  // An agent has written to the file, yet the next task finds it as it was.
  await writeFile(path, 'mine')
  expect(await run('d', 'data/table.csv')).toMatchObject(done)
  // The dataset has replaced the file.
  await writeFile(join(here, 'data/table.csv'), 'new')
  expect(await run('e', 'data/table.csv')).toMatchObject(done)
  expect(seen.slice(4).map(([, text]) => text)).toEqual(['a,b\n1,2\n', 'new'])
  worker.drain()
  await worker.ended
  await expect(stat(path)).rejects.toThrow('ENOENT')
})

test('a file that is there already is used where it lies, and one that the coordinator does not have is left to who needs it', async () => {
  const { coordinator, seen, requests, run, work } = await startReading()
  await using _ = coordinator
  const worker = work({ baseDirectory: here })
  expect(await run('a', 'data/table.csv', 'data/none.csv')).toMatchObject(done)
  expect(seen.map(([path]) => path)).toEqual(['data/table.csv', 'data/none.csv'])
  expect(requests).toEqual([])
  worker.drain()
  await worker.ended
})

const sending = (text: string) => async (_: unknown, response: ServerResponse) => void response.end(text)

test.each([
  ['other bytes of the same length', sending('x,y\n1,2\n'), /data\/table\.csv .*what its coordinator sent, 8 of 8 bytes, is another file/],
  ['fewer bytes', sending('a,b'), /sent, 3 of 8 bytes/],
  ['more bytes', sending('a,b\n1,2\n3,4'), /sends more than the 8 bytes that it has/],
  [
    'an end in between',
    async (_: unknown, response: ServerResponse) =>
      void response.writeHead(200, { 'content-length': 8 }).write('a', () => response.destroy()),
    /terminated|other side closed|aborted/,
  ],
])('%s: the rollout fails with the file and the reason, and a later one has it', async (_, answer, message) => {
  const { coordinator, seen, requests, replaceAnswer, sendFile, run, work } = await startReading()
  await using __ = coordinator
  replaceAnswer(answer)
  const worker = work({ baseDirectory: there })
  expect(await run('a', 'data/table.csv')).toMatchObject(failed(message))
  expect([requests.length, seen]).toEqual([3, []])
  replaceAnswer(sendFile)
  expect(await run('b', 'data/table.csv')).toMatchObject(done)
  worker.drain()
  await worker.ended
})

test('a file that changes or goes while it is fetched: a new attempt has what there is now', async () => {
  const { coordinator, seen, requests, replaceAnswer, sendFile, run, work } = await startReading()
  await using _ = coordinator
  const worker = work({ baseDirectory: there })
  replaceAnswer(async (request, response) => {
    if (requests.length === 1) await writeFile(join(here, 'data/table.csv'), 'new')
    await sendFile(request, response)
  })
  expect(await run('changes', 'data/table.csv')).toMatchObject({ episode: { attempt: 1, reward: 1 } })
  expect(seen.map(([, text]) => text)).toEqual(['new'])
  await writeFile(join(here, 'data/table.csv'), 'newer')
  replaceAnswer(async (request, response) => {
    await rm(join(here, 'data/table.csv'))
    await sendFile(request, response)
  })
  expect(await run('goes', 'data/table.csv')).toMatchObject({ episode: { attempt: 1, reward: 1 } })
  expect(seen.at(-1)).toEqual(['data/table.csv', 'ENOENT'])
  worker.drain()
  await worker.ended
})

test('a worker is given no file that its coordinator withholds', async () => {
  const { coordinator, seen, requests, run, work } = await startReading((path) => fileBelow(resolve(here, path), [join(here, 'data')]))
  await using _ = coordinator
  for (const name of ['secret', 'other']) await writeFile(join(here, name), 'secret')
  await symlink(join(here, 'secret'), join(here, 'data/way-out'))
  const worker = work({ baseDirectory: there })
  expect(await run('a', 'secret', 'data/../other', 'data/way-out', 'data/table.csv')).toMatchObject(done)
  expect(seen.map(([, text]) => text)).toEqual(['ENOENT', 'ENOENT', 'ENOENT', 'a,b\n1,2\n'])
  expect(requests).toHaveLength(1)
  worker.drain()
  await worker.ended
})

test('an attempt that is cancelled while its files are fetched ends', async () => {
  const { coordinator, requests, replaceAnswer, run, work } = await startReading()
  await using _ = coordinator
  replaceAnswer(async () => {})
  const worker = work({ baseDirectory: there })
  void run('a', 'data/table.csv')
  await expect.poll(() => requests).toHaveLength(1)
  expect(await coordinator.service.cancel('a')).toMatchObject({ status: 'cancelled' })
  worker.drain()
  await worker.ended
})

test('files are served by hash alone, to whoever has the token, and by GET', async () => {
  const { coordinator, run, work } = await startReading()
  await using _ = coordinator
  const worker = work({ baseDirectory: there })
  expect(await run('a', 'data/table.csv')).toMatchObject(done)
  const own = await createWorkerServer(coordinator.pool, { token })
  await writeFile(join(here, 'secret'), 'secret')
  const announced = createHash('sha256').update('a,b\n1,2\n').digest('hex')
  const other = createHash('sha256').update('secret').digest('hex')
  for (const { url } of [coordinator.server, own]) {
    expect(await ask(url, announced)).toEqual([200, 'a,b\n1,2\n'])
    for (const path of [other, '%2e%2e%2fsecret', join(here, 'data/table.csv'), ''])
      expect([path, (await ask(url, path))[0]]).toEqual([path, 404])
    // These paths belong to clients.
    for (const path of ['../secret', `${announced}/../../secret`])
      expect([path, (await ask(url, path))[0]]).toEqual([path, url === own.url ? 404 : 401])
    expect((await ask(url, announced, { method: 'POST' }))[0]).toBe(405)
    for (const authorization of ['', 'Bearer wrong']) expect((await ask(url, announced, { headers: { authorization } }))[0]).toBe(401)
  }
  await own.close()
  worker.drain()
  await worker.ended
})

/** Asks for a path as it is written, which `fetch` would not. */
function ask(url: string, path: string, options: { method?: string; headers?: Record<string, string> } = {}): Promise<[number, string]> {
  const { hostname, port } = new URL(url)
  const headers = { authorization: `Bearer ${token}`, ...options.headers }
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, path: filesPath + path, method: options.method ?? 'GET', headers }, async (response) => {
      resolve([response.statusCode!, Buffer.concat(await response.toArray()).toString()])
    })
      .on('error', reject)
      .end()
  })
}

const fileOf = (path: string, text: string): WorkerFile => ({
  path,
  bytes: text.length,
  mode: 0o644,
  sha256: createHash('sha256').update(text).digest('hex'),
})

test('files of attempts that have ended make room for others; what runs keeps its own, and what is too large is refused', async () => {
  const texts = ['first file', 'second one', 'third file']
  const files = texts.map((text, index) => fileOf(`${index}.txt`, text))
  const fetched: string[] = []
  const kept = createFetchedFiles({
    baseDirectory: there,
    maxBytes: 25,
    async fetch(sha256) {
      fetched.push(sha256)
      return (async function* () {
        yield Buffer.from(texts[files.findIndex((file) => file.sha256 === sha256)]!)
      })()
    },
  })
  const { signal } = new AbortController()
  const place = (index: number) => kept.place([files[index]!.path], files, signal)
  const first = await place(0)
  const second = await place(1)
  await expect(place(2)).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringMatching(/2\.txt .*has 10 bytes, and a worker keeps 25 of all tasks that run; lay it/),
  })
  second.release()
  const third = await place(2)
  expect(await readFile(third.paths[0]!, 'utf8')).toBe('third file')
  expect(await readFile(first.paths[0]!, 'utf8')).toBe('first file')
  await expect(stat(second.paths[0]!)).rejects.toThrow('ENOENT')
  expect(fetched).toHaveLength(3)
  await expect(kept.place(['data/..'], [fileOf('data/..', 'x')], signal)).rejects.toThrow(/data\/\.\. .*its path names no file/)
  await kept.close()
  await expect(stat(first.paths[0]!)).rejects.toThrow('ENOENT')
})
