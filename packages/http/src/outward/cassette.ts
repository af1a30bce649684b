import { type FileHandle, open } from 'node:fs/promises'
import { errorMessage, type RelayHeaders, TrainError } from '@aworld-train/core'
import type { OutwardEnd } from './outward-error.ts'

/** A third party's answer, as text. */
export interface RecordedResponse {
  readonly status: number
  readonly contentType: string
  readonly text: string
  /** Encoding of `text` for bytes that are not UTF-8. */
  readonly encoding?: 'base64' | undefined
  /** Address that answered, if redirects led elsewhere. */
  readonly url?: string | undefined
  /** Headers, where programs get them. */
  readonly headers?: RelayHeaders | undefined
  /** How an error ended, unless the other side failed. */
  readonly end?: OutwardEnd | undefined
}

/**
 * A file of answers, one JSON line each, to which lines are only added. Only the last line can be incomplete: what a crash cut off is
 * dropped when the file is opened.
 */
export interface Cassette {
  readonly mode: 'record' | 'replay'
  /** Returns which recorded answer of its key a request gets. With `in-order`, requests are counted from 0; with `first` it is always 0. */
  occurrence(key: string): number
  /** Returns the recorded answer; `null` if there is none. */
  find(key: string, occurrence: number): Promise<RecordedResponse | null>
  /**
   * Adds the next answer of a key; with `first`, only if there is none yet. Resolves when it is on disk. Rejects with STORE_FAILED,
   * which leaves the file as it was.
   */
  add(key: string, response: RecordedResponse): Promise<void>
  /** Keys that had an answer when the file was opened. */
  keys(): Iterable<string>
  close(): Promise<void>
}

export interface CassetteOptions {
  readonly path: string
  readonly mode: 'record' | 'replay'
  /**
   * The answer to a second request with the same key. `in-order` gives the second answer, for a model that is sampled. `first` gives the
   * first answer again, so that all who ask see the same world.
   */
  readonly repeats: 'in-order' | 'first'
}

interface Line extends RecordedResponse {
  readonly version: 1
  readonly key: string
  readonly occurrence: number
}

interface Place {
  readonly offset: number
  readonly length: number
}

const newline = 0x0a

function parseLine(path: string, bytes: Buffer, number: number): Line {
  try {
    const line = JSON.parse(bytes.toString('utf8')) as Line
    if (line.version === 1 && typeof line.key === 'string' && typeof line.text === 'string') return line
  } catch {
    // The error below names the line.
  }
  throw new TrainError('STORE_CORRUPT', `Line ${number} of the recorded answers in ${path} cannot be read; record the run again.`)
}

/** Finds the place of each answer, and the length of all whole lines. */
async function readPlaces(
  path: string,
  file: FileHandle,
): Promise<{ places: Map<string, Place>; size: number; counts: Map<string, number> }> {
  const places = new Map<string, Place>()
  const counts = new Map<string, number>()
  let rest = Buffer.alloc(0)
  let offset = 0
  let number = 0
  const chunk = Buffer.alloc(1024 * 1024)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position)
    if (bytesRead === 0) break
    position += bytesRead
    rest = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
    let start = 0
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline, start)) {
      const { key, occurrence } = parseLine(path, rest.subarray(start, end), ++number)
      places.set(`${key} ${occurrence}`, { offset, length: end - start })
      counts.set(key, Math.max(counts.get(key) ?? 0, occurrence + 1))
      offset += end - start + 1
      start = end + 1
    }
    rest = rest.subarray(start)
  }
  return { places, size: offset, counts }
}

/** Opens the file, or creates it for recording. Rejects with FROZEN_REPLAY_MISSING if there is none to replay. */
export async function openCassette({ path, mode, repeats }: CassetteOptions): Promise<Cassette> {
  let file: FileHandle
  try {
    file = await open(path, mode === 'record' ? 'a+' : 'r')
  } catch (cause) {
    const why = errorMessage(cause)
    if (mode === 'replay')
      throw new TrainError('FROZEN_REPLAY_MISSING', `There are no recorded answers in ${path}: ${why}. Record the run first.`, { cause })
    throw new TrainError('STORE_FAILED', `The file of recorded answers ${path} cannot be opened: ${why}.`, { cause })
  }
  const {
    places,
    size,
    counts: recorded,
  } = await readPlaces(path, file).catch(async (error: unknown) => {
    await file.close()
    throw error
  })
  if (mode === 'record') await file.truncate(size)
  // Recording adds to the existing answers; replaying begins with the first.
  const counts = mode === 'record' ? recorded : new Map<string, number>()
  let length = size
  let queue: { readonly key: string; readonly response: RecordedResponse; resolve(): void; reject(error: TrainError): void }[] = []
  let writing: Promise<void> | null = null

  /** Answers are counted as they are written, so a failed request leaves no gap. */
  async function write(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue
      queue = []
      const added = new Map<string, number>()
      const addedPlaces: [string, Place][] = []
      let end = length
      const lines = batch.flatMap(({ key, response }) => {
        const occurrence = added.get(key) ?? counts.get(key) ?? 0
        if (repeats === 'first' && occurrence > 0) return []
        added.set(key, occurrence + 1)
        const line: Line = { version: 1, key, occurrence, ...response }
        const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
        addedPlaces.push([`${key} ${occurrence}`, { offset: end, length: bytes.length - 1 }])
        end += bytes.length
        return [bytes]
      })
      const bytes = Buffer.concat(lines)
      try {
        if (bytes.length > 0) {
          await file.appendFile(bytes)
          await file.datasync()
        }
        length = end
        for (const [key, count] of added) counts.set(key, count)
        for (const [name, place] of addedPlaces) places.set(name, place)
        for (const { resolve } of batch) resolve()
      } catch (cause) {
        // A partial line left in the file would become the beginning of the next line.
        await file.truncate(length).catch(() => {})
        const error = new TrainError('STORE_FAILED', `Answers could not be recorded in ${path}: ${cause}.`, { cause })
        for (const { reject } of batch) reject(error)
      }
    }
    writing = null
  }

  return {
    mode,
    occurrence(key) {
      if (repeats === 'first') return 0
      const count = counts.get(key) ?? 0
      counts.set(key, count + 1)
      return count
    },
    async find(key, occurrence) {
      const place = places.get(`${key} ${occurrence}`)
      if (!place) return null
      const bytes = Buffer.alloc(place.length)
      await file.read(bytes, 0, place.length, place.offset)
      const { version: _, key: __, occurrence: ___, ...response } = JSON.parse(bytes.toString('utf8')) as Line
      return response
    },
    add(key, response) {
      return new Promise((resolve, reject) => {
        queue.push({ key, response, resolve, reject })
        writing ??= write()
      })
    },
    keys: () => recorded.keys(),
    async close() {
      await writing
      await file.close()
    },
  }
}
