import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate } from '@aworld-train/chat'
import { createRolloutClient, runWorker } from '@aworld-train/rollout'
import { readEvents } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createToyVllm } from '../../../engines/src/remote/testing/vllm-server.ts'
import { runServer } from './run-server.ts'

/** `serve` with an agent that asks no model and answers with the names of its files. */
async function startServe(rollouts: object, more: object = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'serve access '))
  const stop = new AbortController()
  await writeFile(join(directory, 'agent.ts'), "export default (task) => (task.files ?? []).join(' ')\n")
  await mkdir(join(directory, 'data'))
  await writeFile(join(directory, 'data/table.csv'), 'a,b\n')
  await writeFile(join(directory, 'secret'), 'secret')
  await symlink(join(directory, 'secret'), join(directory, 'data/way-out'))
  await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate })
  const sampler = await createToyVllm()
  const models = { policy: { kind: 'vllm', urls: [sampler.url], folder: './model', served: 'toy' } }
  const config = {
    gateway: { port: 0 },
    models,
    clients: null,
    recording: 'recorded',
    drainMs: 100,
    rollouts: { port: 0, agent: './agent.ts', ...rollouts },
    ...more,
  }
  const file = join(directory, 'serve.yaml')
  await writeFile(file, JSON.stringify(config))
  const shown = Promise.withResolvers<string>()
  const ended = runServer({ file, signal: stop.signal, write: shown.resolve })
  onTestFinished(async () => {
    stop.abort()
    await ended.catch(() => {})
    await sampler.close()
    await rm(directory, { recursive: true })
  })
  const text = await Promise.race([shown.promise, ended.then(() => '')])
  return { directory, text, url: /rollouts +(\S+)\/v1/.exec(text)![1]! }
}

const request = (key: string, ...files: string[]) => ({
  version: 1 as const,
  key,
  group: key,
  sample: 0,
  split: 'train' as const,
  policy: 'policy',
  limits: {},
  task: { version: 1 as const, id: key, hash: key, input: 'Go on.', data: {}, dataSource: 'test', extraInfo: {}, files },
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 4, stop: [], seed: 0 },
})

const refused = (path: string) => ({
  code: 'ROLLOUT_INVALID',
  message: expect.stringContaining(`names ${JSON.stringify(path)}, which is no file below the folders of rollouts.taskFiles`),
})

test('a task names files below the folders of the configuration alone, and what a link leads to is no such file', async () => {
  const { directory, url } = await startServe({ taskFiles: ['./data'] })
  const client = createRolloutClient({ url })
  onTestFinished(() => client.close())
  const inside = [join(directory, 'data/table.csv'), 'data/table.csv']
  for (const path of inside) {
    await client.submit(request(path, path))
    expect(await client.get(path, { waitMs: 30_000 })).toMatchObject({ status: 'done', episode: { answer: 'table.csv' } })
  }
  for (const path of ['/etc/hostname', join(directory, 'secret'), 'data/../secret', 'data/way-out', 'serve.yaml', 'data'])
    await expect(client.submit(request(path, 'data/table.csv', path))).rejects.toMatchObject(refused(path))
})

test('without such folders a task names no files', async () => {
  const { url } = await startServe({})
  const client = createRolloutClient({ url })
  onTestFinished(() => client.close())
  await expect(client.submit(request('a', 'data/table.csv'))).rejects.toMatchObject(refused('data/table.csv'))
})

test('workers have a token of their own, which the printed command names, and one that is refused stands in the run', async () => {
  const { directory, text, url } = await startServe({}, { executor: { engineName: 'external' } })
  const [, variable, token] = /^workers .* --token-env (\w+)\n +\1 is ([\w-]{43})$/m.exec(text)!
  expect(variable).toBe('AWORLD_TRAIN_WORKER_TOKEN')
  const worker = (bearer: string) =>
    runWorker({
      url,
      token: bearer,
      name: 'worker',
      slots: 1,
      agent: { hash: 'another', parts: {} },
      signal: new AbortController().signal,
      openExecutor: () => expect.unreachable(),
    })
  await expect(worker('wrong')).rejects.toMatchObject({ code: 'SERVICE_UNAUTHORIZED' })
  await expect(worker(token!)).rejects.toMatchObject({ code: 'WORKER_AGENT' })
  expect(await fetch(`${url}/v1/files/${'0'.repeat(64)}`)).toMatchObject({ status: 401 })
  await expect
    .poll(async () => (await readEvents(join(directory, 'recorded', 'rollouts'))).events.map(({ event }) => event), { timeout: 30_000 })
    .toContainEqual(expect.objectContaining({ type: 'warning-raised', code: 'WORKER_AGENT' }))
})

test('one token for clients and workers is refused', async () => {
  await expect(startServe({ token: 'same' }, { executor: { engineName: 'external', token: 'same' } })).rejects.toThrow(
    /have the same token/,
  )
})
