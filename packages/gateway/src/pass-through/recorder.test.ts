import { expect, test } from 'vitest'
import { createRecorder } from './recorder.ts'

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
  answer: [Buffer.from(JSON.stringify(answer))],
})

test('after its thread has died a record goes on with whole prompts, those of answers that waited for the thread too', async () => {
  const recorder = createRecorder()
  try {
    const record = recorder.newRecord()
    const first = await recorder.read(job(record, { prompt: [1, 2], completion: [3] }))
    expect(first).toMatchObject({ parent: null, branchReason: 'root' })
    const died = recorder.read(job(recorder.newRecord(), { die: true }))
    recorder.flush()
    const waited = recorder.read(job(record, { prompt: [1, 2, 3, 4], completion: [5] }))
    const [one, other] = await Promise.allSettled([died, waited])
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'GATEWAY_FAILED' } })
    const next = await recorder.read(job(record, { prompt: [1, 2, 3, 4, 5, 6], completion: [7] }))
    expect([...next.completion.promptTokenIds, ...next.completion.completionTokenIds]).toEqual([1, 2, 3, 4, 5, 6, 7])
    if (other?.status === 'fulfilled') expect([...other.value.completion.promptTokenIds]).toEqual([1, 2, 3, 4])
    else expect(other).toMatchObject({ reason: { code: 'GATEWAY_FAILED' } })
    const last = await recorder.read(job(record, { prompt: [1, 2, 3, 4, 5, 6, 7, 8], completion: [9] }))
    expect([...last.completion.promptTokenIds]).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(last.parent).toBe(next.call)
    expect(recorder.pendingBytes()).toBe(0)
  } finally {
    await recorder.close()
  }
})
