import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEncoder, type Encoder, type EncoderReply } from './encoder.ts'
import { writeFormat } from './format-fixtures.test-support.ts'
import { loadChatModel } from './load-chat-model.ts'
import { createTokenizer, type TextTokenizer } from './tokenizer.ts'
import { readTokenizerFiles } from './tokenizer-files.ts'

/** Threads that a test started, with the number of answers of each. */
const threads: { readonly worker: Worker; answers: number }[] = []
const watch = (worker: Worker) => {
  const thread = { worker, answers: 0 }
  threads.push(thread)
  worker.on('message', (_: EncoderReply) => {
    thread.answers += 1
  })
}
/** Waits for a thread, which Node reports a little after it was started. */
async function thread(index: number): Promise<Worker> {
  while (!threads[index]) await nextTurn()
  return threads[index].worker
}
beforeEach(() => void process.on('worker', watch))

const open: AsyncDisposable[] = []
afterEach(async () => {
  process.off('worker', watch)
  threads.length = 0
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]()
})

async function tokenizerOf(): Promise<TextTokenizer> {
  const folder = await writeFormat('qwen3')
  open.push(folder)
  const { tokenizerText, tokenizerConfig } = await readTokenizerFiles(folder.directory)
  return createTokenizer(tokenizerText, tokenizerConfig)
}

async function model() {
  const folder = await writeFormat('qwen3')
  open.push(folder)
  return await loadChatModel({ directory: folder.directory, stopTokenIds: folder.stopTokenIds })
}

function started(): Encoder {
  const encoder = createEncoder()
  open.push(encoder)
  return encoder
}

const long = (seed: string) => `${seed} ${'The quick brown fox, 漢字 🙂 <|im_end|>\n'.repeat(800)}`
const ask = (content: string) => ({ messages: [{ role: 'user' as const, content }], tools: [] })
const owner = {}

test('a long prompt is the same when the encoder encodes it, whole or by turns', async () => {
  const [chat, other] = [await model(), await model()]
  const encoder = started()
  for (const content of [long('a'), long('b').slice(0, 9_000)]) {
    const away = await chat.prepareAsync(chat.createConversation(), ask(content), { encoder, owner })
    const here = other.createConversation().prepare(ask(content))
    expect(away.promptTokenIds).toEqual(here.promptTokenIds)
  }
  expect(threads[0]?.answers).toBe(2)
})

test('the event loop runs while a long prompt is encoded', async () => {
  const chat = await model()
  const encoder = started()
  await chat.prepareAsync(chat.createConversation(), ask(long('warm')), { encoder, owner })
  let turns = 0
  const timer = setInterval(() => {
    turns += 1
  }, 1)
  await chat.prepareAsync(chat.createConversation(), ask(long('x').repeat(8)), { encoder, owner })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(3)
})

test('a text that is not long needs no thread', async () => {
  const chat = await model()
  const prepared = await chat.prepareAsync(chat.createConversation(), ask('short'), { encoder: started(), owner })
  expect(chat.decode(prepared.promptTokenIds)).toContain('short')
  expect(threads).toEqual([])
})

test('equal texts that wait are encoded once', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const [one, two] = await Promise.all(['a', 'b'].map(() => encoder.encode({ tokenizer, texts: [long('e')], owner: {} })))
  expect(one).toBe(two)
  expect(threads[0]?.answers).toBe(1)
})

test('an owner with fifty texts delays one with a single text by one of them', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const done: string[] = []
  const encode = async (text: string, whose: object) => {
    await encoder.encode({ tokenizer, texts: [text], owner: whose })
    done.push(text)
  }
  const many = Array.from({ length: 50 }, (_, index) => encode(`many ${index}`, owner))
  const single = encode('single', {})
  await Promise.all([...many, single])
  // The first of the many texts was already on its way.
  expect(done.slice(0, 3)).toEqual(['many 0', 'many 1', 'single'])
  expect(done.length).toBe(51)
})

test('what nobody waits for any more is not encoded; what others wait for is', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const gone = new AbortController()
  const encode = (text: string, signal?: AbortSignal) => encoder.encode({ tokenizer, texts: [text], owner, signal })
  const running = encode('running')
  const left = Array.from({ length: 20 }, (_, index) => encode(`left ${index}`, gone.signal))
  const shared = [encode('shared', gone.signal), encode('shared')]
  gone.abort(new Error('the client hung up'))
  for (const each of [...left, shared[0]]) await expect(each).rejects.toThrow('the client hung up')
  const after = encode('after')
  expect((await Promise.all([running, shared[1], after])).map((ids) => ids?.length)).toEqual([1, 1, 1])
  expect(threads[0]?.answers).toBe(3)
  await expect(encode('late', gone.signal)).rejects.toThrow('the client hung up')
})

test('a text whose asker leaves while it is encoded delays none that follow', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const gone = new AbortController()
  const running = encoder.encode({ tokenizer, texts: [long('running')], owner, signal: gone.signal })
  const next = encoder.encode({ tokenizer, texts: ['next'], owner })
  gone.abort(new Error('the client hung up'))
  await expect(running).rejects.toThrow('the client hung up')
  expect((await next)[0]!.length).toBeGreaterThan(0)
})

test('a thread that dies is started again, and its text tried once more', async () => {
  const tokenizer = await tokenizerOf()
  const encoder = started()
  const texts = [long('d').repeat(4)]
  const encoded = encoder.encode({ tokenizer: tokenizer.source, texts, owner })
  const next = encoder.encode({ tokenizer: tokenizer.source, texts: ['next'], owner })
  await (await thread(0)).terminate()
  expect((await encoded)[0]).toEqual(tokenizer.encode(texts[0]!))
  expect((await next)[0]).toEqual(tokenizer.encode('next'))
  expect(threads.map(({ answers }) => answers)).toEqual([0, 2])
})

test('a text over which the thread dies twice fails so that it can be sent again, and those behind it are encoded', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const failed = encoder.encode({ tokenizer, texts: [long('f').repeat(4)], owner }).catch((error) => error)
  const next = encoder.encode({ tokenizer, texts: ['next'], owner })
  for (const index of [0, 1]) void (await thread(index)).terminate()
  expect(await failed).toMatchObject({ code: 'GATEWAY_OVERLOADED', retryable: true, message: expect.stringContaining('ended twice') })
  expect((await next)[0]!.length).toBeGreaterThan(0)
  expect(threads.length).toBe(3)
})

test('a text that its tokenizer fails on is an error of that text alone', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const broken = { ...tokenizer, hash: 'broken', tokenizerText: '{' }
  await expect(encoder.encode({ tokenizer: broken, texts: ['x'], owner })).rejects.toMatchObject({
    code: 'GATEWAY_FAILED',
    message: expect.stringMatching(/cannot encode a prompt: .*JSON/),
  })
  expect((await encoder.encode({ tokenizer, texts: ['next'], owner }))[0]!.length).toBeGreaterThan(0)
  expect(threads.length).toBe(1)
})

test('closing rejects what waits and what comes', async () => {
  const { source: tokenizer } = await tokenizerOf()
  const encoder = started()
  const waiting = encoder.encode({ tokenizer, texts: [long('c')], owner })
  const closing = encoder.close()
  await expect(waiting).rejects.toMatchObject({ code: 'GATEWAY_OVERLOADED' })
  await closing
  await expect(encoder.encode({ tokenizer, texts: ['d'], owner })).rejects.toMatchObject({ code: 'GATEWAY_OVERLOADED' })
})
