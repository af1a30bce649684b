import { setTimeout as delay } from 'node:timers/promises'
import { retryAfterMs } from '@aworld-train/core'

/** Statuses of a busy server. With `Retry-After` it has not begun the request and says when it will. */
const busy: ReadonlySet<number> = new Set([429, 503])
/** A server that asks for no pause is not asked again at once. */
const shortestPauseMs = 100

interface Answer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** Sends again when a busy server allows it, for at most `limitMs` in all. Throws if the server asks for a longer pause. */
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
