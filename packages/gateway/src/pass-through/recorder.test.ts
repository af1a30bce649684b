import { expect, test } from 'vitest'
import { createRecordTokens } from './record-tokens.ts'
import { createRecorder, type NumberedTurn } from './recorder.ts'

/** Reads answers of the form `{prompt, completion}`, and ends the thread if one says so. */
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

const job = (record: number, answer: { die?: true; prompt?: number[]; completion?: number[] }, request = '{"messages":[]}') => ({
  record,
  reader,
  stream: false,
  request: Buffer.from(request),
  answer: [Buffer.from(JSON.stringify(answer))],
  broken: null,
})

test('after its thread has died a record goes on with whole prompts, those of answers that waited for the thread too', async () => {
  const recorder = createRecorder()
  try {
    const record = recorder.newRecord()
    const tokens = createRecordTokens()
    const idsOf = ({ call, parent, suffixTokenIds, completionTokenIds }: NumberedTurn) => [
      ...tokens.add(call, parent, suffixTokenIds, completionTokenIds).promptTokenIds,
    ]
    const first = await recorder.read(job(record, { prompt: [1, 2], completion: [3] }))
    expect(idsOf(first)).toEqual([1, 2])
    expect(first).toMatchObject({ parent: null, branchReason: 'root' })
    const died = recorder.read(job(recorder.newRecord(), { die: true }))
    recorder.flush()
    const waited = recorder.read(job(record, { prompt: [1, 2, 3, 4], completion: [5] }))
    const [one, other] = await Promise.allSettled([died, waited])
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'GATEWAY_FAILED' } })
    const next = await recorder.read(job(record, { prompt: [1, 2, 3, 4, 5, 6], completion: [7] }))
    if (other?.status === 'fulfilled') expect(idsOf(other.value)).toEqual([1, 2, 3, 4])
    else expect(other).toMatchObject({ reason: { code: 'GATEWAY_FAILED' } })
    expect(idsOf(next)).toEqual([1, 2, 3, 4, 5, 6])
    const last = await recorder.read(job(record, { prompt: [1, 2, 3, 4, 5, 6, 7, 8], completion: [9] }))
    expect(idsOf(last)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect([...last.suffixTokenIds]).toEqual([8])
    expect(last.parent).toBe(next.call)
  } finally {
    await recorder.close()
  }
})

test('behind an answer that could not be read a record goes on with whole prompts', async () => {
  const recorder = createRecorder()
  try {
    const record = recorder.newRecord()
    const unreadable = recorder.read(job(record, { prompt: [1], completion: [2] }, '{"messages":[NaN]}'))
    const next = recorder.read(job(record, { prompt: [1, 2, 3], completion: [4] }))
    await expect(unreadable).rejects.toMatchObject({ code: 'POLICY_RESPONSE_INVALID' })
    expect(await next).toMatchObject({ parent: null, suffixTokenIds: Int32Array.of(1, 2, 3) })
  } finally {
    await recorder.close()
  }
})
