import type { OutwardResponse, RelayHeaders } from '@aworld-train/core'
import { openCassette, type RecordedResponse } from './cassette.ts'
import { OutwardError } from './outward-error.ts'
import { serviceOfKey } from './outward-key.ts'
import type { OutwardCassette } from './outward-options.ts'
import { createSharedCalls } from './shared-calls.ts'

/** An answer of the world. Programs get its headers too. */
export interface WorldResponse extends OutwardResponse {
  readonly headers?: RelayHeaders | undefined
}

/** A live answer. `passing` says that a repetition may get another one, as from a busy server or after a refused key. */
export interface LiveAnswer {
  readonly response: WorldResponse
  readonly passing: boolean
}

/** The network outside, as it was when first asked. */
export interface RecordedWorld {
  /**
   * Returns the recorded answer, else a live one if allowed, which is recorded. Equal requests at the same time share one call. `occurrence`
   * is the number of equal requests before it, where those are told apart. Where nothing is asked again, the last recorded one stands for
   * what comes after it.
   */
  answer(key: string, live: (signal: AbortSignal) => Promise<LiveAnswer>, signal: AbortSignal, occurrence?: number): Promise<WorldResponse>
  /** Services with recorded answers, if no other answers are possible; null if live ones are. */
  readonly services: ReadonlySet<string> | null
  close(): Promise<void>
}

/** Encodes a body so that text stays readable in the file. */
function toRecord({ status, url, contentType, headers, bytes }: WorldResponse): RecordedResponse {
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text).equals(bytes)
  return { status, url, contentType, headers, ...(isText ? { text } : { text: bytes.toString('base64'), encoding: 'base64' as const }) }
}

/** Status 0 stands for an error that belongs to the recorded world. */
function fromRecord({ status, url = '', contentType, headers, text, encoding, end = 'failed' }: RecordedResponse): WorldResponse {
  if (status === 0) throw new OutwardError(text, true, { end })
  return { status, url, contentType, headers, bytes: Buffer.from(text, encoding ?? 'utf8') }
}

/** Rejects as `openCassette` does. */
export async function openRecordedWorld({ path, mode, miss = 'error' }: OutwardCassette): Promise<RecordedWorld> {
  const cassette = await openCassette({ path, mode, repeats: 'first' })
  const share = createSharedCalls<WorldResponse>()
  const replaysOnly = mode === 'replay' && miss === 'error'

  const keyOf = (key: string, occurrence: number) => (occurrence === 0 ? key : `${key} #${occurrence + 1}`)

  async function find(key: string, occurrence: number): Promise<RecordedResponse | null> {
    for (let each = occurrence; each >= 0; each--) {
      const recorded = await cassette.find(keyOf(key, each), 0)
      if (recorded || !replaysOnly) return recorded
    }
    return null
  }

  async function answer(
    key: string,
    live: (signal: AbortSignal) => Promise<LiveAnswer>,
    occurrence: number,
    signal: AbortSignal,
  ): Promise<WorldResponse> {
    const recorded = await find(key, occurrence)
    if (recorded) return fromRecord(recorded)
    if (replaysOnly) throw new OutwardError(`The recorded world has no answer to ${key}; ask for something that it has.`, true)
    if (mode === 'replay') return (await live(signal)).response
    try {
      const { response, passing } = await live(signal)
      if (!passing) await cassette.add(keyOf(key, occurrence), toRecord(response))
      return response
    } catch (error) {
      if (error instanceof OutwardError && error.lasting) {
        const end = error.end === 'failed' ? undefined : error.end
        await cassette.add(keyOf(key, occurrence), { status: 0, contentType: '', text: error.message, end })
      }
      throw error
    }
  }

  return {
    answer: (key, live, caller, occurrence = 0) => share(keyOf(key, occurrence), (signal) => answer(key, live, occurrence, signal), caller),
    services: replaysOnly ? new Set(Array.from(cassette.keys(), serviceOfKey)) : null,
    close: () => cassette.close(),
  }
}
