import { isUtf8 } from 'node:buffer'
import { badRequest } from '../failure.ts'

/** The text of an item of the history, exactly as written. */
export type ItemText = (index: number) => string

/** A parsed body. `json` is its text, in which one `null` may stand for the items of `field` that were known; `itemText` then has them. */
export interface JsonBody {
  readonly value: unknown
  readonly json: string
  readonly itemText?: ItemText | undefined
}

/** The last body of one agent: a conversation repeats itself in every request, and only what is new is parsed. */
export interface BodyMemory {
  last: ItemizedBody | null
}

interface ItemizedBody {
  readonly bytes: Buffer
  /** Offset behind the bracket that opens the list. */
  readonly start: number
  /** Offset behind each item. */
  readonly ends: readonly number[]
  readonly items: readonly unknown[]
}

/** Smaller bodies are parsed whole, larger ones are not kept. */
const smallest = 16 * 1024
const largest = 4 * 1024 * 1024

/**
 * The JSON of a request whose list of objects `field` grows from call to call. Objects of the list that begin the last body
 * too are those of its value: do not write to them. Throws GATEWAY_BAD_REQUEST.
 */
export function readJsonBody(bytes: Buffer, field: string, memory: BodyMemory): JsonBody {
  if (bytes.length < smallest || bytes.length > largest) return parseWhole(bytes)
  return (memory.last && parseNew(bytes, field, memory.last, memory)) ?? parseAndItemize(bytes, field, memory)
}

/** Parses a body without a memory. Throws GATEWAY_BAD_REQUEST. */
export function parseWhole(bytes: Buffer): JsonBody {
  if (!isUtf8(bytes)) throw badRequest('The body is not valid UTF-8; send JSON encoded as UTF-8.')
  const json = bytes.toString('utf8')
  try {
    return { value: JSON.parse(json), json }
  } catch (error) {
    throw badRequest(`The body is not valid JSON: ${error instanceof Error ? error.message : error}. Send a JSON object.`)
  }
}

function parseAndItemize(bytes: Buffer, field: string, memory: BodyMemory): JsonBody {
  const body = parseWhole(bytes)
  const found = findItems(bytes, field)
  const items = found && listOf(body.value, field)
  memory.last = found && items?.length === found.ends.length ? { bytes, ...found, items } : null
  return body
}

/** `null` where the body does not begin as the last one did, or is not plain enough to tell. */
function parseNew(bytes: Buffer, field: string, last: ItemizedBody, memory: BodyMemory): JsonBody | null {
  const known = commonItems(bytes, last)
  const from = last.ends[known - 1]
  if (from === undefined) return null
  const rest = bytes.subarray(from)
  const added = itemsToEnd(rest, field)
  if (added === null || !isUtf8(rest)) return null
  const json = `${bytes.toString('utf8', 0, last.start)}null${rest.toString('utf8')}`
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return null
  }
  const list = listOf(value, field)
  if (list?.length !== added.length + 1) return null
  const items = [...last.items.slice(0, known), ...list.slice(1)]
  Object.assign(value as object, { [field]: items })
  const { start } = last
  const ends = [...last.ends.slice(0, known), ...added.map((end) => from + end)]
  memory.last = { bytes, start, ends, items }
  const itemText: ItemText = (index) => {
    const text = bytes.toString('utf8', ends[index - 1] ?? start, ends[index])
    return text.slice(text.indexOf('{'))
  }
  return { value, json, itemText }
}

function listOf(value: unknown, field: string): readonly unknown[] | null {
  const list = (value as Record<string, unknown> | null)?.[field]
  return Array.isArray(list) ? list : null
}

/** How many items of the last body begin this one. */
function commonItems(bytes: Buffer, { bytes: last, ends }: ItemizedBody): number {
  const isSame = (from: number, to: number) => to <= bytes.length && last.compare(bytes, from, to, from, to) === 0
  let same = 0
  let different = ends.length + 1
  for (let tried = ends.length; same + 1 < different; tried = (same + different) >> 1) {
    if (isSame(same === 0 ? 0 : ends[same - 1]!, ends[tried - 1]!)) same = tried
    else different = tried
  }
  return same
}

const quote = 0x22
const backslash = 0x5c
const isOpening = (byte: number | undefined) => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number | undefined) => byte === 0x7d || byte === 0x5d

/** Where the list `field` of a valid JSON object has its items; `null` where it is missing, stands twice, or holds anything but objects. */
function findItems(bytes: Buffer, field: string): { start: number; ends: number[] } | null {
  let depth = 0
  let key = ''
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      const end = endOfString(bytes, at)
      if (depth === 1 && isKey(bytes, end)) {
        key = bytes.toString('utf8', at + 1, end - 1)
        if (key.includes('\\')) return null
      }
      at = end - 1
    } else if (isOpening(byte)) {
      if (depth === 1 && byte === 0x5b && key === field) {
        const start = at + 1
        const ends = itemsToEnd(bytes.subarray(start), field)
        return ends && { start, ends: ends.map((end) => start + end) }
      }
      depth += 1
    } else if (isClosing(byte)) depth -= 1
  }
  return null
}

/** Offsets behind the objects of a list that `bytes` stand in the middle of, to the end of the body around it; `null` where it is not plain. */
function itemsToEnd(bytes: Buffer, field: string): number[] | null {
  const ends: number[] = []
  let at = 0
  for (let depth = 0; depth >= 0; at += 1) {
    const byte = bytes[at]
    if (byte === undefined) return null
    if (byte === quote) {
      if (depth === 0) return null
      at = endOfString(bytes, at) - 1
    } else if (isOpening(byte)) {
      if (depth === 0 && byte === 0x5b) return null
      depth += 1
    } else if (isClosing(byte)) {
      depth -= 1
      if (depth === 0) ends.push(at + 1)
    }
  }
  return endsPlainly(bytes, at, field) ? ends : null
}

/** No later member of the object has the name of the list, or one that would have to be unescaped to tell. */
function endsPlainly(bytes: Buffer, from: number, field: string): boolean {
  let depth = 1
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      const end = endOfString(bytes, at)
      if (depth === 1 && isKey(bytes, end)) {
        const key = bytes.toString('utf8', at + 1, end - 1)
        if (key === field || key.includes('\\')) return false
      }
      at = end - 1
    } else if (isOpening(byte)) depth += 1
    else if (isClosing(byte)) depth -= 1
  }
  return true
}

/** Offset behind the string that opens at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  let end = bytes.indexOf(quote, start + 1)
  while (end > 0) {
    let slashes = 0
    while (bytes[end - 1 - slashes] === backslash) slashes += 1
    if (slashes % 2 === 0) return end + 1
    end = bytes.indexOf(quote, end + 1)
  }
  return bytes.length
}

function isKey(bytes: Buffer, end: number): boolean {
  let at = end
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return bytes[at] === 0x3a
}
