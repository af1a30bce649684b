import { isIP } from 'node:net'
import type { Outward, OutwardRequest, OutwardResponse } from '@aworld-train/core'
import { Agent, type Dispatcher } from 'undici'
import { openCassette, type RecordedResponse } from './cassette.ts'
import { type ExchangeAnswer, exchange, isRedirect } from './exchange.ts'
import { guardedConnector } from './guarded-connector.ts'
import { isUnsent, OutwardError, type RequestWords, refusedAddress, toOutwardError, tooLarge } from './outward-error.ts'
import { outwardKey, serviceOfKey } from './outward-key.ts'
import type { OutwardOptions, OutwardService } from './outward-options.ts'
import { isPublicAddress } from './public-address.ts'
import { createRate, type Rate, type RateLimits } from './rate.ts'
import { createRedact } from './redact.ts'
import { createSharedCalls } from './shared-calls.ts'

/** An outward world that ends: what is under way is aborted. */
export interface OpenOutward extends Outward {
  close(): Promise<void>
}

const defaultMaxBytes = 10_000_000
const defaultTimeoutMs = 20_000
const maxRedirects = 5
const retries = 2
/** Longer than this nobody waits for a server that asks to be left alone. */
const longestPauseMs = 60_000
const serviceRate: RateLimits = { concurrent: 16 }
const hostRate: RateLimits = { concurrent: 8 }
/** Refused for load. */
const busy: ReadonlySet<number> = new Set([429, 502, 503, 504])
/** A key that is wrong or spent: a fault of the operator's, which the recorded world leaves out. */
const keyRefused: ReadonlySet<number> = new Set([401, 402, 403])
/** What a page of the web is told of us; keys and cookies never. */
const publicHeaders: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-type', 'user-agent'])

interface Ask extends RequestWords {
  readonly url: URL
  /** The service asked, and where it is; null for the public web. */
  readonly service: OutwardService | null
  readonly base: URL | null
  readonly request: OutwardRequest
  readonly method: 'GET' | 'HEAD' | 'POST'
}

/** How long the server asks to be left alone; `null` where it does not say. */
function retryAfterMs(value: string): number | null {
  if (value === '') return null
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : null
}

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

/** `wikipedia:de` is the part `de` of the service `wikipedia`: a name of a host, which fills the star in its base URL. */
function splitName(name: string): [service: string, part: string] {
  const [service = '', part = ''] = name.split(/:(.*)/s)
  if (!/^[a-z0-9-]*$/i.test(part)) throw new OutwardError(`"${part}" is no part of the service "${service}".`, true)
  return [service, part]
}

/** Opens the way to the outside. Rejects as `openCassette` does. */
export async function openOutward({ services, web = {}, cassette: recording }: OutwardOptions): Promise<OpenOutward> {
  const { ports = [80, 443], mirrors = {}, userAgent = 'aworld-train', rate: webRate = hostRate } = web
  const named = new Map(services.map((service) => [service.name, service]))
  const redact = createRedact(services.flatMap(({ secrets = [] }) => secrets))
  const cassette = recording ? await openCassette({ path: recording.path, mode: recording.mode, repeats: 'first' }) : null
  const replaysOnly = recording?.mode === 'replay' && recording.miss !== 'live'
  const recordedServices = new Set(replaysOnly ? Array.from(cassette!.keys(), (key) => splitName(serviceOfKey(key))[0]) : [])
  const guarded = new Agent({ connect: guardedConnector(), allowH2: false })
  /** For services and mirrors, which the operator names. */
  const trusted = new Agent({ allowH2: false })
  const closing = new AbortController()
  const share = createSharedCalls<OutwardResponse>()
  const rates = new Map<string, Rate>()

  /** Runs under the limits of one name; those of a name that nobody asks are forgotten. */
  async function withRate<Value>(
    name: string,
    limits: RateLimits,
    signal: AbortSignal,
    work: (rate: Rate) => Promise<Value>,
  ): Promise<Value> {
    const rate = rates.get(name) ?? createRate(limits)
    rates.set(name, rate)
    try {
      return await rate.run(() => work(rate), signal)
    } finally {
      if (rate.isIdle()) rates.delete(name)
    }
  }

  function checkWebAddress(url: URL): void {
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new OutwardError(`Only http and https addresses can be read, not ${url.protocol}; use another source.`, true)
    if (url.username !== '' || url.password !== '')
      throw new OutwardError(`The address of ${url.host} holds a user name or a password; leave them away.`, true)
    if (mirrors[url.origin]) return
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    if (!ports.includes(port)) throw new OutwardError(`Port ${port} of ${url.hostname} cannot be read, only ${ports.join(' and ')}.`, true)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) && !isPublicAddress(host)) throw refusedAddress(url.host)
  }

  /** By which connections, at which address and with which headers `url` is asked. */
  function route(url: URL, { service, base, request }: Ask): { dispatcher: Dispatcher; url: URL; headers: Record<string, string> } {
    const headers = Object.fromEntries(Object.entries(request.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
    if (service && url.origin === base?.origin) {
      const target = new URL(url)
      for (const [name, value] of Object.entries(service.query ?? {})) target.searchParams.set(name, value)
      return { dispatcher: trusted, url: target, headers: { 'user-agent': userAgent, ...headers, ...service.headers } }
    }
    checkWebAddress(url)
    const shown = Object.fromEntries(Object.entries(headers).filter(([name]) => publicHeaders.has(name)))
    const mirror = mirrors[url.origin]
    return {
      dispatcher: mirror ? trusted : guarded,
      url: mirror ? Object.assign(new URL(mirror), { pathname: url.pathname, search: url.search }) : url,
      headers: { 'user-agent': userAgent, ...shown },
    }
  }

  /** Follows redirects, each of which is judged like the first address. */
  async function follow(ask: Ask, signal: AbortSignal): Promise<ExchangeAnswer & { readonly url: URL }> {
    let url = ask.url
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ask.timeoutMs)])
    for (let hops = 0; ; hops++) {
      const way = route(url, ask)
      const answer = await exchange({ ...way, method: ask.method, body: ask.request.body, maxBytes: ask.maxBytes }, limit).catch(
        (cause) => {
          signal.throwIfAborted()
          throw isUnsent(cause) ? cause : toOutwardError(limit.aborted ? limit.reason : cause, url.hostname, ask)
        },
      )
      const location = answer.header('location')
      // What is posted goes to nobody but whom it was meant for.
      if (ask.method === 'POST' || !isRedirect(answer.status) || location === '') return { ...answer, url }
      if (hops === maxRedirects) throw new OutwardError(`${ask.label} leads on more than ${maxRedirects} times; use another source.`, true)
      if (!URL.canParse(location, url.href)) return { ...answer, url }
      const { hash } = url
      url = new URL(location, url)
      url.hash ||= hash
    }
  }

  /** Asks until there is an answer, at most `retries` times again where the other side is busy or cannot be reached. */
  async function askLive(ask: Ask, signal: AbortSignal): Promise<OutwardResponse> {
    const name = ask.service ? ask.service.name : `web ${ask.url.host}`
    const limits = ask.service ? (ask.service.rate ?? serviceRate) : webRate
    for (let tried = 0; ; tried++) {
      const answer = await withRate(name, limits, signal, async (rate) => {
        const last = tried === retries
        const backoffMs = 200 * 3 ** tried
        try {
          const reached = await follow(ask, signal)
          const pauseMs = retryAfterMs(reached.header('retry-after')) ?? backoffMs
          if (!busy.has(reached.status) || last || pauseMs > longestPauseMs) return reached
          rate.pause(pauseMs)
        } catch (cause) {
          if (!isUnsent(cause)) throw cause
          if (last) throw toOutwardError(cause, ask.url.hostname, ask)
          rate.pause(backoffMs)
        }
        return null
      })
      if (!answer) continue
      if (answer.status === 429)
        throw new OutwardError(
          `${ask.label} is asked too often and refuses to answer (429); go on with something else and try again later.`,
          false,
        )
      // A service may repeat its key in what it answers; latin1 keeps every byte as it is.
      const bytes = ask.service ? Buffer.from(redact(answer.bytes.toString('latin1')), 'latin1') : answer.bytes
      return { status: answer.status, url: redact(answer.url.href), contentType: answer.header('content-type'), bytes }
    }
  }

  /** The answer of the recorded world, or a live one, which it takes up. */
  async function answerOf(key: string, toAsk: () => Ask, signal: AbortSignal): Promise<OutwardResponse> {
    if (!cassette) return askLive(toAsk(), signal)
    const recorded = await cassette.find(key, cassette.occurrence(key))
    if (recorded) return fromRecord(recorded)
    if (replaysOnly) throw new OutwardError(`The recorded world has no answer to ${key}; ask for something that it has.`, true)
    const ask = toAsk()
    if (cassette.mode === 'replay') return askLive(ask, signal)
    const answer = await askLive(ask, signal).catch(async (error: unknown) => {
      if (error instanceof OutwardError && error.lasting) await cassette.add(key, { status: 0, contentType: '', text: error.message })
      throw error
    })
    const passing = busy.has(answer.status) || (ask.service !== null && keyRefused.has(answer.status))
    if (!passing) await cassette.add(key, toRecord(answer))
    return answer
  }

  /** Asks for `url` by the name that the recorded world has for it: an address of the web, or a service's path. */
  async function send(
    subject: Pick<Ask, 'label' | 'request'> & { readonly name: string; readonly target: string },
    to: () => Pick<Ask, 'url' | 'service' | 'base'>,
    caller: AbortSignal,
  ) {
    const { name, target, label, request } = subject
    const { method = 'GET', maxBytes = defaultMaxBytes, timeoutMs = defaultTimeoutMs } = request
    const toAsk = (): Ask => ({ ...to(), request, method, label, maxBytes, timeoutMs })
    const key = outwardKey(name, method, target, request.body)
    const signal = AbortSignal.any([caller, closing.signal])
    const response = await (cassette ? share(key, (shared) => answerOf(key, toAsk, shared), signal) : answerOf(key, toAsk, signal))
    // A recorded answer, and one that another caller began to ask for, had that caller's limit.
    if (response.bytes.length > maxBytes) throw tooLarge(label, maxBytes)
    return response
  }

  function toService(name: string, path: string) {
    const [first, part] = splitName(name)
    const service = named.get(first)
    if (!service) throw new OutwardError(`The service "${first}" is not configured here; its operator has to set it up.`, true)
    const base = new URL(service.baseUrl.replace('*', part))
    const folder = base.pathname.replace(/\/$/, '')
    const url = new URL(`${base.origin}${folder}${path}`)
    if (url.origin !== base.origin || !`${url.pathname}/`.startsWith(`${folder}/`))
      throw new OutwardError(`"${path}" leads out of the service "${name}".`, true)
    return { url, service, base }
  }

  return {
    async fetch(address, request, signal) {
      if (!URL.canParse(address)) throw new OutwardError(`"${address}" is no address; give one that begins with https://.`, true)
      const url = new URL(address)
      checkWebAddress(url)
      const label = `${url.origin}${url.pathname}`
      return send({ name: 'web', target: url.href, label, request }, () => ({ url, service: null, base: null }), signal)
    },
    async service(name, path, request, signal) {
      return send({ name, target: path, label: `the service "${name}"`, request }, () => toService(name, path), signal)
    },
    hasService: (name) => (replaysOnly ? recordedServices.has(name) : named.has(name)),
    async close() {
      closing.abort(new OutwardError('The environment ends.', false))
      await Promise.all([guarded.destroy(), trusted.destroy()])
      await cassette?.close()
    },
  }
}
