import { createSlots, type Outward, type OutwardRequest, type OutwardResponse, type Relay } from '@aworld-train/core'
import { retryRules } from '../retry.ts'
import { openLiveOutward } from './live-outward.ts'
import { createOccurrences } from './occurrences.ts'
import { OutwardError, tooLarge } from './outward-error.ts'
import { outwardKey, relayKey } from './outward-key.ts'
import type { OutwardOptions, OutwardService } from './outward-options.ts'
import { openRecordedWorld } from './recorded-world.ts'

/** An `Outward` with an end, which aborts requests under way. */
export interface OpenOutward extends Outward {
  close(): Promise<void>
}

const defaultMaxBytes = 10_000_000
const defaultTimeoutMs = 20_000
/** Most requests that the programs of one rollout have under way. */
const relaysAtOnce = 12

/** A request, under its name in the recorded world. */
interface Subject {
  readonly name: string
  /** The address of a page, or the path of a service. */
  readonly target: string
  /** Its name in errors. */
  readonly label: string
  /** Its address, which only a live request needs. */
  locate(): { readonly url: URL; readonly service: OutwardService | null }
}

/** Opens the network outside. Rejects with CONFIG_INVALID for an invalid address, and as `openCassette` does. */
export async function openOutward({ services, web = {}, cassette }: OutwardOptions): Promise<OpenOutward> {
  const named = new Map(services.map((service) => [service.name, service]))
  const live = openLiveOutward(services, web)
  const world = cassette ? await openRecordedWorld(cassette) : null
  const closing = new AbortController()

  async function send(subject: Subject, request: OutwardRequest, caller: AbortSignal): Promise<OutwardResponse> {
    const { method = 'GET', headers, body, maxBytes = defaultMaxBytes, timeoutMs = defaultTimeoutMs } = request
    const { name, target, label, locate } = subject
    const ask = (signal: AbortSignal) => live.request({ ...locate(), method, headers, body, label, maxBytes, timeoutMs }, signal)
    const signal = AbortSignal.any([caller, closing.signal])
    const response = world ? await world.answer(outwardKey(name, method, target, body), ask, signal) : (await ask(signal)).response
    // A recorded answer, or one shared with another caller, was read under another limit.
    if (response.bytes.length > maxBytes) throw tooLarge(label, maxBytes)
    return response
  }

  /** Locates a service. `wikipedia:de` is the part `de` of the service `wikipedia`: a host name that fills the star in its base URL. */
  function locate(name: string, path: string): { url: URL; service: OutwardService } {
    const [first = '', part = ''] = name.split(/:(.*)/s)
    const service = named.get(first)
    if (!service) throw new OutwardError(`The service "${first}" is not configured here; its operator has to set it up.`, false)
    if (!/^[a-z0-9-]*$/i.test(part)) throw new OutwardError(`"${part}" is no part of the service "${first}".`, true)
    const base = new URL(service.baseUrl.replace('*', part))
    const folder = base.pathname.replace(/\/$/, '')
    const url = new URL(`${base.origin}${folder}${path}`)
    if (url.origin !== base.origin || !`${url.pathname}/`.startsWith(`${folder}/`))
      throw new OutwardError(`"${path}" leads out of the service "${name}".`, true)
    return { url, service }
  }

  function openRelay(): Relay {
    const places = createSlots(relaysAtOnce)
    const occurrences = createOccurrences()
    return {
      check: live.checkAddress,
      async send(request, caller) {
        const { url } = request
        live.checkAddress(url)
        const words = { label: `${url.origin}${url.pathname}`, maxBytes: defaultMaxBytes, timeoutMs: defaultTimeoutMs }
        const ask = (signal: AbortSignal) => live.relay({ ...request, ...words }, signal)
        const signal = AbortSignal.any([caller, closing.signal])
        const key = relayKey(request)
        await places.take(signal)
        const occurrence = occurrences.take(key)
        const isPassing = ({ status }: { readonly status: number }) => retryRules.outward.statuses(status)
        let isKept = false
        try {
          if (!world) return await ask(signal)
          const answered = await world.answer(
            key,
            async (live) => {
              const response = await ask(live)
              const contentType = String(response.headers['content-type'] ?? '')
              return { response: { ...response, url: '', contentType }, passing: isPassing(response) }
            },
            signal,
            occurrence,
          )
          isKept = !isPassing(answered)
          return { status: answered.status, headers: answered.headers ?? {}, bytes: answered.bytes }
        } catch (error) {
          isKept = error instanceof OutwardError && error.lasting
          throw error
        } finally {
          if (!isKept) occurrences.giveBack(key, occurrence)
          places.give()
        }
      },
    }
  }

  return {
    relay: openRelay,
    async fetch(address, request, signal) {
      if (!URL.canParse(address)) throw new OutwardError(`"${address}" is no address; give one that begins with https://.`, true)
      const url = new URL(address)
      url.hash = ''
      live.checkAddress(url)
      const label = `${url.origin}${url.pathname}`
      return send({ name: 'web', target: url.href, label, locate: () => ({ url, service: null }) }, request, signal)
    },
    async service(name, path, request, signal) {
      return send({ name, target: path, label: `the service "${name}"`, locate: () => locate(name, path) }, request, signal)
    },
    hasService: (name) => (world?.services ?? named).has(name),
    async close() {
      closing.abort(new OutwardError('The environment ends.', false))
      await live.close()
      await world?.close()
    },
  }
}
