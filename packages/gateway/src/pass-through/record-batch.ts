import { fieldsOfAnswer } from './recorder-protocol.ts'
import type { Slab } from './slabs.ts'

/** Answers that gather for the thread. Their bytes are copied at once, so that the memory they came in is soon free again. */
export interface OpenBatch {
  readonly slab: Slab
  fits(bytes: number): boolean
  /** `fields` are those of the protocol, without the two lengths. */
  add(fields: readonly [call: number, record: number, reader: number, contentType: number], parts: AnswerParts): void
  usedBytes(): number
  fields(): Int32Array<ArrayBuffer>
}

export interface AnswerParts {
  readonly request: Uint8Array
  readonly answer: readonly Uint8Array[]
}

export function createOpenBatch(slab: Slab): OpenBatch {
  const { bytes } = slab
  let fields = new Int32Array(16 * fieldsOfAnswer)
  let field = 0
  let at = 0
  return {
    slab,
    fits: (more) => at + more <= bytes.length,
    add([call, record, reader, contentType], { request, answer }) {
      if (field === fields.length) {
        const larger = new Int32Array(2 * field)
        larger.set(fields)
        fields = larger
      }
      bytes.set(request, at)
      const middle = at + request.length
      at = middle
      for (const chunk of answer) {
        bytes.set(chunk, at)
        at += chunk.length
      }
      fields[field++] = call
      fields[field++] = record
      fields[field++] = reader
      fields[field++] = contentType
      fields[field++] = request.length
      fields[field++] = at - middle
    },
    usedBytes: () => at,
    fields: () => fields.slice(0, field),
  }
}
