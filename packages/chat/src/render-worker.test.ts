import { afterEach, expect, test } from 'vitest'
import { writeFormat } from './format-fixtures.test-support.ts'
import { loadChatModel } from './load-chat-model.ts'
import { createRenderWorker, type RenderWorker } from './render-worker.ts'
import { createTokenizer } from './tokenizer.ts'

const open: RenderWorker[] = []
afterEach(async () => {
  for (const worker of open.splice(0)) await worker.close()
})

function started(deadlineMs?: number): RenderWorker {
  const worker = createRenderWorker({ deadlineMs })
  open.push(worker)
  return worker
}

async function model() {
  const folder = await writeFormat('qwen3')
  return { folder, model: await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds }) }
}

const long = (seed: string) => `${seed} ${'The quick brown fox, 漢字 🙂 <|im_end|>\n'.repeat(800)}`
const ask = (content: string) => ({ messages: [{ role: 'user' as const, content }], tools: [] })

test('a long prompt is the same when the worker encodes it', async () => {
  const { folder, model: chat } = await model()
  await using _ = folder
  const worker = started()
  const other = await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
  const away = await chat.prepareAsync(chat.createConversation(), ask(long('a')), { worker })
  const here = other.createConversation().prepare(ask(long('a')))
  expect(away.promptTokenIds).toEqual(here.promptTokenIds)
  expect(here.promptTokenIds.length).toBeGreaterThan(10_000)
})

test('the event loop runs while a long prompt is encoded', async () => {
  const { folder, model: chat } = await model()
  await using _ = folder
  const worker = started()
  await chat.prepareAsync(chat.createConversation(), ask(long('warm')), { worker })
  let turns = 0
  const timer = setInterval(() => {
    turns += 1
  }, 1)
  await chat.prepareAsync(chat.createConversation(), ask(long('x').repeat(8)), { worker })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(3)
})

test('a text that is not long needs no thread', async () => {
  const { folder, model: chat } = await model()
  await using _ = folder
  const refused: RenderWorker = {
    encode: () => Promise.reject(new Error('not asked for')),
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const prepared = await chat.prepareAsync(chat.createConversation(), ask('short'), { worker: refused })
  expect(chat.decode(prepared.promptTokenIds)).toContain('short')
})

test('a worker that is late, ended or closed is done without', async () => {
  const { folder, model: chat } = await model()
  await using _ = folder
  const expected = (await model()).model.createConversation().prepare(ask(long('late'))).promptTokenIds
  const late = started(0)
  expect((await chat.prepareAsync(chat.createConversation(), ask(long('late')), { worker: late })).promptTokenIds).toEqual(expected)
  const closed = started()
  await closed.close()
  const prepared = await chat.prepareAsync(chat.createConversation(), ask(long('closed')), { worker: closed })
  expect(chat.decode(prepared.promptTokenIds)).toContain('closed The quick')
})

test('closing gives back what waits, and a signal ends a wait', async () => {
  const { folder } = await model()
  await using _ = folder
  const { readModelFolder } = await import('./model-folder.ts')
  const { tokenizerText, tokenizerConfig } = await readModelFolder(folder.directory)
  const { source } = createTokenizer(tokenizerText, tokenizerConfig)
  const worker = started()
  const controller = new AbortController()
  const aborted = worker.encode(source, long('b'), controller.signal)
  const waiting = worker.encode(source, long('c'))
  controller.abort(new Error('gone'))
  await expect(aborted).rejects.toThrow('gone')
  await worker.close()
  expect(await waiting).toBeNull()
  expect(await worker.encode(source, 'd')).toBeNull()
})

test('equal texts that wait are encoded once', async () => {
  const { folder } = await model()
  await using _ = folder
  const { readModelFolder } = await import('./model-folder.ts')
  const { tokenizerText, tokenizerConfig } = await readModelFolder(folder.directory)
  const { source } = createTokenizer(tokenizerText, tokenizerConfig)
  const worker = started()
  const [one, two] = await Promise.all([worker.encode(source, long('e')), worker.encode(source, long('e'))])
  expect(one).not.toBeNull()
  expect(one).toBe(two)
})
