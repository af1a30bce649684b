import { setTimeout as delay } from 'node:timers/promises'
import { retryAfterMs } from '@aworld-train/core'

/** Statuses of a server that is busy; with `Retry-After` it has not begun with the request and says when it will. */
const busy: ReadonlySet<number> = new Set([429, 503])
/** A server that asks for no pause is not wantedMs again at once. */
const shortestPauseMs = 100

interface Answer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** Sends again when a busy server says that it may be, for `limitMs` in all; throws where the server asks for more. */
export async function sendPatiently<Answered extends Answer>(
  send: () => Promise<Answered>,
  limitMs: number,
  signal: AbortSignal | null | undefined,
): Promise<Answered> {
  const end = performance.now() + limitMs
  for (;;) {
    const answer = await send()
    const wantedMs = busy.has(answer.status) ? retryAfterMs(answer.headers.get('retry-after')) : null
    if (wantedMs === null) return answer
    await answer.body?.cancel()
    const pauseMs = Math.max(wantedMs, shortestPauseMs)
    if (performance.now() + pauseMs > end)
      throw new Error(
        `it is busy (HTTP ${answer.status}) and asks to wait ${Math.ceil(pauseMs / 1000)} s, which is past the limit of ${limitMs / 1000} s; raise the server's timeout`,
      )
    await delay(pauseMs, undefined, signal ? { signal } : {})
  }
}
