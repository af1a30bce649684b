import { PassThrough, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import type { RelayHeaders } from '@aworld-train/core'
import { type Dispatcher, request } from 'undici'

/** One request to one address, without redirects or repetition. */
export interface Exchange {
  readonly dispatcher: Dispatcher
  readonly url: URL
  readonly method: string
  readonly headers: RelayHeaders
  readonly body?: string | Uint8Array | undefined
  /** Largest accepted answer after decompression. */
  readonly maxBytes: number
}

export interface ExchangeAnswer {
  readonly status: number
  /** Returns a header; the first of several, empty if absent. */
  header(name: string): string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/** The error for an answer larger than the request accepts. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

/** The error for an answer compressed in a way that the request did not accept. */
export class UnknownPacking extends Error {
  override readonly name = 'UnknownPacking'
}

const unpackers: Readonly<Record<string, () => Transform>> = {
  '': () => new PassThrough(),
  identity: () => new PassThrough(),
  gzip: createGunzip,
  'x-gzip': createGunzip,
  br: createBrotliDecompress,
}

/** Longest body of a redirect, which is discarded. */
const maxRedirectBytes = 64 * 1024

export const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status)

/** Sends one request. Bytes are counted as they are decompressed, because the length in a header may be wrong. */
export async function exchange(
  { dispatcher, url, method, headers, body, maxBytes }: Exchange,
  signal: AbortSignal,
): Promise<ExchangeAnswer> {
  const answer = await request(url, {
    dispatcher,
    method: method as Dispatcher.HttpMethod,
    headers: { ...headers, 'accept-encoding': 'gzip, br' } as Record<string, string | string[]>,
    body: body ?? null,
    signal,
    // The caller's signal is the time limit.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const status = answer.statusCode
  const { headers: answered } = answer
  const header = (name: string) => {
    const value = answered[name]
    return (Array.isArray(value) ? value[0] : value) ?? ''
  }
  if (method === 'HEAD' || (isRedirect(status) && header('location') !== '')) {
    await answer.body.dump({ limit: maxRedirectBytes, signal })
    return { status, header, headers: answered, bytes: Buffer.alloc(0) }
  }
  const packing = header('content-encoding').trim().toLowerCase()
  const unpack = unpackers[packing]
  if (!unpack) {
    answer.body.on('error', () => {}).destroy()
    throw new UnknownPacking(packing)
  }
  const chunks: Buffer[] = []
  let size = 0
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      size += chunk.length
      if (size > maxBytes) throw new AnswerTooLarge()
      chunks.push(chunk)
    }
  }
  await pipeline(answer.body, unpack(), collect, { signal })
  return { status, header, headers: answered, bytes: Buffer.concat(chunks) }
}
