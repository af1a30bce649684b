import type { FinishReason, Sampling } from '@aworld-train/protocol'
import type { MemoryPool } from '../memory-pool.ts'
import { fieldsOfAnswer } from './recorder-protocol.ts'

/**
 * Answers that gather for the thread. Their bytes are copied at once, so that the memory they came in is soon free again; large
 * requests move as they are.
 */
export interface OpenBatch {
  readonly samplings: readonly string[]
  /** Requests that move as they are. */
  readonly requests: readonly Uint8Array[]
  fits(bytes: number): boolean
  add(call: number, strings: StringNumbers, job: RecordJob): void
  usedBytes(): number
  /** Requests and answers, one behind the other. */
  bytes(): Uint8Array
  fields(): Float64Array<ArrayBuffer>
}

/** Strings of a job by their numbers. */
export interface StringNumbers {
  readonly reader: number
  readonly contentType: number
  readonly logprobs: number
  /** -1 where the answer is whole. */
  readonly broken: number
}

export interface RecordJob {
  /** Its number. */
  readonly record: number
  readonly reader: URL
  readonly contentType: string
  /** The request as its client sent it; where its memory is the pool's, it moves to the thread. */
  readonly request: Buffer
  /** Fields that the request had in another dialect, by name, as JSON; empty where it came as it is. */
  readonly unusedFields: Buffer
  readonly answer: readonly Buffer[]
  readonly logprobs: string
  readonly sampling: Sampling
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  /** Those that the server had meanwhile. */
  readonly versions: readonly number[]
  readonly abandoned: boolean
  /** Why the answer may stop in its middle. */
  readonly broken: FinishReason | null
}

/** Where the bytes of batches lie. */
export interface BatchMemory {
  /** Those of the batch itself. */
  readonly bytes: Buffer
  readonly pool: MemoryPool
}

/** Bytes of a job that are copied into its batch. */
export function bytesToCopy({ request, unusedFields, answer }: RecordJob, pool: MemoryPool): number {
  let bytes = unusedFields.length + (pool.owns(request) ? 0 : request.length)
  for (const chunk of answer) bytes += chunk.length
  return bytes
}

export function createOpenBatch({ bytes, pool }: BatchMemory, textOf: (sampling: Sampling) => string): OpenBatch {
  const samplings: string[] = []
  const requests: Uint8Array[] = []
  let movedBytes = 0
  let lastSampling: Sampling | null = null
  let fields = new Float64Array(32 * fieldsOfAnswer)
  let field = 0
  let at = 0
  return {
    samplings,
    requests,
    fits: (more) => at + more <= bytes.length,
    add(call, { reader, contentType, logprobs, broken }, job) {
      const { record, sampling, startedAt, endedAt, versions, abandoned, request, unusedFields, answer } = job
      if (field === fields.length) {
        const larger = new Float64Array(2 * field)
        larger.set(fields)
        fields = larger
      }
      let said = request.length
      if (pool.owns(request)) {
        said = -1 - requests.length
        requests.push(request)
        pool.lend(request)
        movedBytes += request.length
      } else {
        request.copy(bytes, at)
        at += request.length
      }
      unusedFields.copy(bytes, at)
      const middle = at + unusedFields.length
      at = middle
      for (const chunk of answer) {
        chunk.copy(bytes, at)
        at += chunk.length
      }
      if (sampling !== lastSampling) {
        lastSampling = sampling
        samplings.push(textOf(sampling))
      }
      let [lowest, highest] = [versions[0]!, versions[0]!]
      for (const version of versions) {
        if (version < lowest) lowest = version
        if (version > highest) highest = version
      }
      fields[field++] = call
      fields[field++] = record
      fields[field++] = reader
      fields[field++] = contentType
      fields[field++] = logprobs
      fields[field++] = samplings.length - 1
      fields[field++] = said
      fields[field++] = unusedFields.length
      fields[field++] = at - middle
      fields[field++] = startedAt
      fields[field++] = endedAt
      fields[field++] = lowest
      fields[field++] = highest
      fields[field++] = abandoned ? 1 : 0
      fields[field++] = broken
    },
    usedBytes: () => at + movedBytes,
    bytes: () => new Uint8Array(bytes.buffer, bytes.byteOffset, at),
    fields: () => fields.slice(0, field),
  }
}
