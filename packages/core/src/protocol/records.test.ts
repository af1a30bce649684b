import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import * as protocol from '../index.ts'

const corpus = fileURLToPath(new URL('../../../../schemas/corpus/', import.meta.url))
const schemas: Readonly<Record<string, z.ZodType>> = {
  'task.jsonl': protocol.TrainingTask,
  'answer-key.jsonl': protocol.AnswerKey,
  'rollout-request.jsonl': protocol.RolloutRequest,
  'turn.jsonl': protocol.Turn,
  'episode.jsonl': protocol.Episode,
  'training-sample.jsonl': protocol.TrainingSample,
  'token-ledger.jsonl': protocol.TokenLedger,
  'run-event.jsonl': protocol.RunEvent,
}

const records = readdirSync(corpus).flatMap((file) =>
  readFileSync(corpus + file, 'utf8')
    .trim()
    .split('\n')
    .map((line, index) => [`${file}:${index + 1}`, file, JSON.parse(line) as Record<string, unknown>] as const),
)

describe('the corpus of golden records', () => {
  it('has a record of every schema', () => {
    expect(readdirSync(corpus).sort()).toEqual(Object.keys(schemas).sort())
  })

  it.each(records)('%s is read and written back unchanged', (_name, file, record) => {
    const schema = schemas[file] as z.ZodType
    expect(z.encode(schema, z.decode(schema, record as never))).toEqual(record)
  })

  it.each(records)('%s with an unknown field is refused', (_name, file, record) => {
    expect(z.safeDecode(schemas[file] as z.ZodType, { ...record, surprise: 1 } as never).success).toBe(false)
  })
})

describe('token arrays', () => {
  it('are typed arrays in memory and plain arrays on the wire', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (ids) => {
        const decoded = z.decode(protocol.TokenIds, ids)
        expect(decoded).toBeInstanceOf(Int32Array)
        expect(z.encode(protocol.TokenIds, decoded)).toEqual(ids)
      }),
    )
  })

  it('refuse a negative id and a mask that is neither 0 nor 1', () => {
    expect(z.safeDecode(protocol.TokenIds, [-1]).success).toBe(false)
    expect(z.safeDecode(protocol.LossMask, [2]).success).toBe(false)
  })
})

describe('TrainError', () => {
  it('takes boundary and retryability from the catalogue and keeps its cause', () => {
    const cause = new Error('no route')
    const error = new protocol.TrainError('TOOL_TIMEOUT', 'The tool "search" did not answer in 5 s; raise its timeout.', { cause })
    expect(error).toMatchObject({ boundary: 'environment', retryable: true, cause })
    expect(protocol.ErrorRecord.parse(error.toRecord())).toEqual(error.toRecord())
  })

  it('wraps a foreign error once', () => {
    const wrapped = protocol.toTrainError(new TypeError('x is not a function'), 'REWARD_FAILED')
    expect(wrapped).toMatchObject({ code: 'REWARD_FAILED', message: 'x is not a function' })
    expect(protocol.toTrainError(wrapped, 'AGENT_FAILED')).toBe(wrapped)
  })

  it('has a remedy for every code', () => {
    for (const [code, { remedy }] of Object.entries(protocol.errorCatalogue)) expect(remedy, code).toMatch(/[.;]$/)
  })
})
