import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { type OutwardRequest, orAborted, type RelayRequest, type RelayResponse, TrainError } from '@aworld-train/core'
import { Agent, type Dispatcher } from 'undici'
import { isUnsent, retryPauseMs, retryRules } from '../retry.ts'
import { createByteBudget } from './byte-budget.ts'
import { type ExchangeAnswer, exchange, isRedirect } from './exchange.ts'
import { guardedConnector, type LookupAll } from './guarded-connector.ts'
import { hostNotFound, isNotFound, OutwardError, type RequestWords, refused, refusedAddress, toOutwardError } from './outward-error.ts'
import type { OutwardService, WebOptions } from './outward-options.ts'
import { isPublicAddress } from './public-address.ts'
import { createRate, type Rate, type RateLimits } from './rate.ts'
import type { LiveAnswer } from './recorded-world.ts'
import { createRedact } from './redact.ts'
import { answerHeaders, requestHeaders } from './relay-headers.ts'

/** A request and its destination. */
export interface LiveRequest extends RequestWords {
  readonly url: URL
  /** Service of the request; null for the public web. */
  readonly service: OutwardService | null
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly headers: OutwardRequest['headers']
  readonly body: OutwardRequest['body']
}

/** The live network. */
export interface LiveOutward {
  /** Throws an OutwardError for an address of the web that can never be read. */
  checkAddress(url: URL): void
  /**
   * Sends the request, and repeats it if the other side is busy or cannot be reached. Rejects with an OutwardError or the signal's reason.
   */
  request(request: LiveRequest, signal: AbortSignal): Promise<LiveAnswer>
  /** Sends the request of a program once, and leads nowhere else. Rejects as `request` does. */
  relay(request: RelayRequest & RequestWords, signal: AbortSignal): Promise<RelayResponse>
  close(): Promise<void>
}

const maxRedirects = 5
/** Most bytes that the answers to tools under way may hold in memory. Those to programs may hold as many. */
const maxBytesUnderWay = 1_000_000_000
const serviceRate: RateLimits = { concurrent: 16 }
const hostRate: RateLimits = { concurrent: 8 }
/** More than one rollout may have under way, so that a slow page of one does not hold up the others. */
const relayRate: RateLimits = { concurrent: 64 }
/** Statuses for a key that is wrong or used up. */
const keyRefused: ReadonlySet<number> = new Set([401, 402, 403])
/** Headers that public pages may get; keys and cookies are never among them. */
const publicHeaders: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-type', 'user-agent'])

function httpUrl(text: string, what: string): URL {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return new URL(text)
  throw new TrainError('CONFIG_INVALID', `The ${what} is "${text}", which is no http address; write it with http:// or https://.`)
}

/** Number of names that are looked up to see whether this machine finds any. */
const triedNames = 3

/** Opens the live network. Throws CONFIG_INVALID for an invalid address. */
export function openLiveOutward(services: readonly OutwardService[], web: WebOptions, lookup: LookupAll = systemLookup): LiveOutward {
  const { ports = [80, 443], userAgent = 'aworld-train', rate: webRate } = web
  const mirrors = new Map(
    Object.entries(web.mirrors ?? {}).map(([origin, mirror]) => [httpUrl(origin, 'origin').origin, httpUrl(mirror, `mirror of ${origin}`)]),
  )
  for (const { name, baseUrl } of services) httpUrl(baseUrl.replace('*', 'part'), `base URL of the service "${name}"`)
  const redact = createRedact(services.flatMap(({ secrets = [] }) => secrets))
  const serviceNames = services
    .map(({ baseUrl }) => new URL(baseUrl.replace('*', 'part')).hostname)
    .filter((host) => host !== 'localhost' && !isIP(host.replace(/^\[|\]$/g, '')))
  const guarded = new Agent({ connect: guardedConnector(lookup), allowH2: false })
  /** Connections to services and mirrors, which the operator names. */
  const trusted = new Agent({ connect: { lookup: lookup as LookupFunction }, allowH2: false })
  const memory = createByteBudget(maxBytesUnderWay)
  /** Apart, so that no page of a program, which may load for long, stops the tools. */
  const relayMemory = createByteBudget(maxBytesUnderWay)
  const rates = new Map<string, Rate>()

  /** Runs work under the limits of one name. Limits of an idle name are forgotten. */
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

  function checkAddress(url: URL): void {
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw refused(`Only http and https addresses can be read, not ${url.protocol}; use another source.`)
    if (url.username !== '' || url.password !== '')
      throw refused(`The address of ${url.host} holds a user name or a password; leave them away.`)
    if (mirrors.has(url.origin)) return
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    if (!ports.includes(port)) throw refused(`Port ${port} of ${url.hostname} cannot be read, only ${ports.join(' and ')}.`)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) && !isPublicAddress(host)) throw refusedAddress(url.host)
  }

  /** Connections, address and headers for `url`, which is the request's own address or one that it redirects to. */
  function route(url: URL, request: LiveRequest): { dispatcher: Dispatcher; url: URL; headers: Record<string, string> } {
    const { service } = request
    const headers = Object.fromEntries(Object.entries(request.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
    if (service && url.origin === request.url.origin) {
      const target = new URL(url)
      for (const [name, value] of Object.entries(service.query ?? {})) target.searchParams.set(name, value)
      return { dispatcher: trusted, url: target, headers: { 'user-agent': userAgent, ...headers, ...service.headers } }
    }
    const shown = Object.fromEntries(Object.entries(headers).filter(([name]) => publicHeaders.has(name)))
    return { ...routeOfWeb(url), headers: { 'user-agent': userAgent, ...shown } }
  }

  /** Connections and address for `url`, which is of the public web or has a mirror. */
  function routeOfWeb(url: URL): { dispatcher: Dispatcher; url: URL } {
    checkAddress(url)
    const mirror = mirrors.get(url.origin)
    return {
      dispatcher: mirror ? trusted : guarded,
      url: mirror ? Object.assign(new URL(mirror), { pathname: url.pathname, search: url.search }) : url,
    }
  }

  /** Whether this machine finds the name of any service but `except`. Without a network it finds none. */
  async function findsNames(except: string, signal: AbortSignal): Promise<boolean> {
    const names = [...new Set(serviceNames)].filter((name) => name !== except).slice(0, triedNames)
    const found = names.map(
      (name) => new Promise<void>((resolve, reject) => lookup(name, { all: true }, (e) => (e ? reject(e) : resolve()))),
    )
    return await orAborted(Promise.any(found), signal).then(
      () => true,
      () => false,
    )
  }

  /** The error for a request to `url` that got no answer, unless nothing of it was sent: then `cause` itself, which may be tried again. */
  async function failure(
    cause: unknown,
    url: URL,
    words: RequestWords,
    { isService, limit }: { readonly isService: boolean; readonly limit: AbortSignal },
  ): Promise<unknown> {
    const { hostname } = url
    if (isNotFound(cause)) return hostNotFound(hostname, { isService, othersAreFound: await findsNames(hostname, limit) })
    return isUnsent(cause) ? cause : toOutwardError(limit.aborted ? limit.reason : cause, hostname, words)
  }

  /** Follows redirects. Each is checked like the first address. */
  async function follow(request: LiveRequest, signal: AbortSignal): Promise<ExchangeAnswer & { readonly url: URL }> {
    const { method, body, maxBytes, label } = request
    const limit = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)])
    let { url } = request
    for (let hops = 0; ; hops++) {
      const answer = await exchange({ ...route(url, request), method, body, maxBytes }, limit).catch(async (cause: unknown) => {
        signal.throwIfAborted()
        const isService = request.service !== null && url.origin === request.url.origin
        throw await failure(cause, url, request, { isService, limit })
      })
      const location = answer.header('location')
      // A posted body is not sent to another address.
      const leadsOn = method !== 'POST' && isRedirect(answer.status) && URL.canParse(location, url.href)
      if (!leadsOn || location === '') return { ...answer, url }
      if (hops === maxRedirects) throw new OutwardError(`${label} leads on more than ${maxRedirects} times; use another source.`, true)
      url = new URL(location, url)
    }
  }

  return {
    checkAddress,
    async request(request, signal) {
      const { service, label, url } = request
      const name = service ? service.name : `web ${url.host}`
      const limits = service ? (service.rate ?? serviceRate) : (webRate ?? hostRate)
      for (let tried = 0; ; tried++) {
        const answer = await withRate(name, limits, signal, async (rate) => {
          const sent = await memory
            .run(request.maxBytes, () => follow(request, signal), signal)
            .then(
              (answer) => ({ answer: { ...answer, retryAfter: answer.header('retry-after') } }),
              (error: unknown) => ({ error }),
            )
          const pauseMs = retryPauseMs(retryRules.outward, sent, tried)
          // Other requests to the same host wait too.
          if (pauseMs !== null) rate.pause(pauseMs)
          else if ('answer' in sent) return sent.answer
          else throw isUnsent(sent.error) ? toOutwardError(sent.error, url.hostname, request) : sent.error
          return null
        })
        if (!answer) continue
        const { status } = answer
        if (status === 429)
          throw new OutwardError(
            `${label} is asked too often and refuses to answer (429); go on with something else and try again later.`,
            false,
          )
        // A service may repeat its key in its answer. Latin-1 keeps every byte as it is.
        const bytes = service ? Buffer.from(redact(answer.bytes.toString('latin1')), 'latin1') : answer.bytes
        const response = { status, url: redact(answer.url.href), contentType: answer.header('content-type'), bytes }
        return { response, passing: retryRules.outward.statuses(status) || (service !== null && keyRefused.has(status)) }
      }
    },
    async relay(request, signal) {
      const { url, method, body, maxBytes } = request
      const headers = requestHeaders(request.headers)
      return await withRate(`relay ${url.host}`, webRate ?? relayRate, signal, () =>
        relayMemory.run(
          maxBytes,
          async () => {
            const limit = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)])
            try {
              const answer = await exchange({ ...routeOfWeb(url), headers, method, body, maxBytes }, limit)
              return { status: answer.status, headers: answerHeaders(answer.headers), bytes: answer.bytes }
            } catch (cause) {
              signal.throwIfAborted()
              const error = await failure(cause, url, request, { isService: false, limit })
              throw toOutwardError(error, url.hostname, request)
            }
          },
          signal,
        ),
      )
    },
    async close() {
      await Promise.all([guarded.destroy(), trusted.destroy()])
    },
  }
}
