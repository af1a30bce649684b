import { crc32 } from 'node:zlib'
import type { Turn } from '@aworld-train/core'
import { fromLittleEndian, memoryOf, toLittleEndian } from './little-endian.ts'

/** A turn as it is stored: JSON in the database, tokens in a segment. */
export interface TurnRecord {
  /** The turn without its token arrays. */
  readonly body: string
  /** Prompt tokens taken from the parent's prompt and completion; the rest is in the segment. */
  readonly prefixLength: number
  readonly suffixLength: number
  readonly completionLength: number
  /** Little-endian: suffix ids (int32), completion ids (int32), logprobs (float32). */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly crc32: number
}

/** Lengths of the parts of a turn's tokens. */
export type TurnTokens = Pick<TurnRecord, 'prefixLength' | 'suffixLength' | 'completionLength'>

/** Turns a turn into a record. If its prompt extends `parent`, the record has only the suffix. */
export function toTurnRecord(turn: Turn, parent: Turn | null): TurnRecord {
  const { promptTokenIds, completionTokenIds, rolloutLogprobs, ...rest } = turn
  if (completionTokenIds.length !== rolloutLogprobs.length) {
    throw new RangeError(
      `Turn ${turn.index} of ${turn.trajectory} has ${completionTokenIds.length} sampled tokens and ${rolloutLogprobs.length} logprobs; give one logprob a token.`,
    )
  }
  const prefixLength = parent && extendsParent(promptTokenIds, parent) ? parent.promptTokenIds.length + parent.completionTokenIds.length : 0
  const suffix = promptTokenIds.subarray(prefixLength)
  const bytes = new Uint8Array(suffix.byteLength + completionTokenIds.byteLength + rolloutLogprobs.byteLength)
  bytes.set(toLittleEndian(suffix), 0)
  bytes.set(toLittleEndian(completionTokenIds), suffix.byteLength)
  bytes.set(toLittleEndian(rolloutLogprobs), suffix.byteLength + completionTokenIds.byteLength)
  return {
    body: JSON.stringify(rest),
    prefixLength,
    suffixLength: suffix.length,
    completionLength: completionTokenIds.length,
    bytes,
    crc32: crc32(bytes),
  }
}

/** The inverse of toTurnRecord. `parentOf` returns a turn by its index. Throws if a prefix has no parent. */
export function fromTurnRecord(body: string, tokens: TurnTokens, bytes: Uint8Array, parentOf: (index: number) => Turn | undefined): Turn {
  const { prefixLength, suffixLength, completionLength } = tokens
  const rest = JSON.parse(body) as Turn
  const promptTokenIds = new Int32Array(prefixLength + suffixLength)
  if (prefixLength > 0) {
    const parent = rest.parent === null ? undefined : parentOf(rest.parent)
    if (!parent) throw new RangeError(`turn ${rest.index} of ${rest.trajectory} continues a turn that is missing`)
    promptTokenIds.set(parent.promptTokenIds)
    promptTokenIds.set(parent.completionTokenIds, parent.promptTokenIds.length)
  }
  const completionEnd = (suffixLength + completionLength) * 4
  fromLittleEndian(bytes.subarray(0, suffixLength * 4), promptTokenIds, prefixLength)
  const completionTokenIds = fromLittleEndian(bytes.subarray(suffixLength * 4, completionEnd), new Int32Array(completionLength))
  const rolloutLogprobs = fromLittleEndian(bytes.subarray(completionEnd), new Float32Array(completionLength))
  return { ...rest, promptTokenIds, completionTokenIds, rolloutLogprobs }
}

function extendsParent(prompt: Int32Array, parent: Turn): boolean {
  const { promptTokenIds, completionTokenIds } = parent
  const end = promptTokenIds.length + completionTokenIds.length
  if (prompt.length < end) return false
  return (
    equal(prompt.subarray(0, promptTokenIds.length), promptTokenIds) &&
    equal(prompt.subarray(promptTokenIds.length, end), completionTokenIds)
  )
}

function equal(a: Int32Array, b: Int32Array): boolean {
  return Buffer.compare(memoryOf(a), memoryOf(b)) === 0
}
