import { expect, test } from 'vitest'
import { createMemoryPool } from '../memory-pool.ts'
import { createRecordTokens } from './record-tokens.ts'
import type { RecordedTurn } from './recorded-turn.ts'
import { createRecorder, type Recorder } from './recorder.ts'

/** Reads answers that are `{prompt, completion}`, and ends the thread where one says so. */
const reader = new URL(
  `data:text/javascript,${encodeURIComponent(`export function readAnswer(body) {
    const { die, prompt, completion } = JSON.parse(Buffer.from(body).toString())
    if (die) process.exit(3)
    return {
      promptTokenIds: Int32Array.from(prompt),
      completionTokenIds: Int32Array.from(completion),
      rolloutLogprobs: new Float32Array(completion.length),
      message: { role: 'assistant', content: 'x' },
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: { promptTokens: prompt.length, completionTokens: completion.length, cachedTokens: 0 },
    }
  }`)}`,
)

const job = (record: number, answer: { die?: true; prompt?: number[]; completion?: number[] }) => ({
  record,
  reader,
  contentType: 'application/json',
  request: Buffer.from('{"messages":[]}'),
  unusedFields: Buffer.alloc(0),
  answer: [Buffer.from(JSON.stringify(answer))],
  logprobs: 'temperature',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 },
  startedAt: 1,
  endedAt: 2,
  versions: [0],
  abandoned: false,
  broken: null,
})

const who = { agent: 'agent', attempt: 0 }

/** As a promise. */
function read(recorder: Recorder, given: ReturnType<typeof job>): Promise<RecordedTurn> {
  return new Promise((resolve, reject) => recorder.read(given, (turn, error) => (turn ? resolve(turn) : reject(error))))
}

test('after its thread has died a record goes on with whole prompts, those of answers that waited for the thread too', async () => {
  const recorder = createRecorder(createMemoryPool())
  try {
    const record = recorder.newRecord(who)
    const tokens = createRecordTokens()
    const first = await read(recorder, job(record, { prompt: [1, 2], completion: [3] }))
    first.toTurn(tokens)
    expect(first).toMatchObject({ parent: null, branchReason: 'root' })
    const died = read(recorder, job(recorder.newRecord(who), { die: true }))
    recorder.flush()
    const waited = read(recorder, job(record, { prompt: [1, 2, 3, 4], completion: [5] }))
    const [one, other] = await Promise.allSettled([died, waited])
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'GATEWAY_FAILED' } })
    const next = await read(recorder, job(record, { prompt: [1, 2, 3, 4, 5, 6], completion: [7] }))
    if (other?.status === 'fulfilled') expect([...other.value.toTurn(tokens).promptTokenIds]).toEqual([1, 2, 3, 4])
    else expect(other).toMatchObject({ reason: { code: 'GATEWAY_FAILED' } })
    const { promptTokenIds, completionTokenIds } = next.toTurn(tokens)
    expect([...promptTokenIds, ...completionTokenIds]).toEqual([1, 2, 3, 4, 5, 6, 7])
    const last = await read(recorder, job(record, { prompt: [1, 2, 3, 4, 5, 6, 7, 8], completion: [9] }))
    expect([...last.toTurn(tokens).promptTokenIds]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(last.parent).toBe(next.index)
    expect(next.index).toBeGreaterThan(first.index)
    expect(recorder.pendingBytes()).toBe(0)
  } finally {
    await recorder.close()
  }
})
