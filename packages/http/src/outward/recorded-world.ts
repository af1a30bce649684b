import type { OutwardResponse } from '@aworld-train/core'
import { openCassette, type RecordedResponse } from './cassette.ts'
import { OutwardError } from './outward-error.ts'
import { serviceOfKey } from './outward-key.ts'
import type { OutwardCassette } from './outward-options.ts'
import { createSharedCalls } from './shared-calls.ts'

/** A live answer. `passing` says that a repetition may get another one, as from a busy server or after a refused key. */
export interface LiveAnswer {
  readonly response: OutwardResponse
  readonly passing: boolean
}

/** The network outside, as it was when first asked. */
export interface RecordedWorld {
  /** Returns the recorded answer, else a live one if allowed, which is recorded. Equal requests at the same time share one call. */
  answer(key: string, live: (signal: AbortSignal) => Promise<LiveAnswer>, signal: AbortSignal): Promise<OutwardResponse>
  /** Services with recorded answers, if no other answers are possible; null if live ones are. */
  readonly services: ReadonlySet<string> | null
  close(): Promise<void>
}

/** Encodes a body so that text stays readable in the file. */
function toRecord({ status, url, contentType, bytes }: OutwardResponse): RecordedResponse {
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text).equals(bytes)
  return { status, url, contentType, ...(isText ? { text } : { text: bytes.toString('base64'), encoding: 'base64' as const }) }
}

/** Status 0 stands for an error that belongs to the recorded world. */
function fromRecord({ status, url = '', contentType, text, encoding }: RecordedResponse): OutwardResponse {
  if (status === 0) throw new OutwardError(text, true)
  return { status, url, contentType, bytes: Buffer.from(text, encoding ?? 'utf8') }
}

/** Rejects as `openCassette` does. */
export async function openRecordedWorld({ path, mode, miss = 'error' }: OutwardCassette): Promise<RecordedWorld> {
  const cassette = await openCassette({ path, mode, repeats: 'first' })
  const share = createSharedCalls<OutwardResponse>()
  const replaysOnly = mode === 'replay' && miss === 'error'

  async function answer(key: string, live: (signal: AbortSignal) => Promise<LiveAnswer>, signal: AbortSignal): Promise<OutwardResponse> {
    const recorded = await cassette.find(key, cassette.occurrence(key))
    if (recorded) return fromRecord(recorded)
    if (replaysOnly) throw new OutwardError(`The recorded world has no answer to ${key}; ask for something that it has.`, true)
    if (mode === 'replay') return (await live(signal)).response
    try {
      const { response, passing } = await live(signal)
      if (!passing) await cassette.add(key, toRecord(response))
      return response
    } catch (error) {
      if (error instanceof OutwardError && error.lasting) await cassette.add(key, { status: 0, contentType: '', text: error.message })
      throw error
    }
  }

  return {
    answer: (key, live, caller) => share(key, (signal) => answer(key, live, signal), caller),
    services: replaysOnly ? new Set(Array.from(cassette.keys(), serviceOfKey)) : null,
    close: () => cassette.close(),
  }
}
