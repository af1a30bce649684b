import { type Answered, retryPauseMs, retryRules, sendWithRetries } from '@aworld-train/http'

interface Answer {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** Sends again when a busy server allows it, for at most `limitMs` in all. Throws if the server asks for a longer pause. */
export async function sendPatiently<Received extends Answer>(
  send: () => Promise<Received>,
  limitMs: number,
  signal: AbortSignal | null | undefined,
): Promise<Received> {
  const rule = retryRules.environment
  const once = async () => {
    const response = await send()
    return { status: response.status, retryAfter: response.headers.get('retry-after'), response }
  }
  const discard = ({ response }: Answered & { readonly response: Received }) => response.body?.cancel()
  const answer = await sendWithRetries(rule, once, { patienceMs: limitMs, signal, discard })
  const pauseMs = retryPauseMs(rule, { answer }, 0)
  if (pauseMs === null) return answer.response
  await discard(answer)
  throw new Error(
    `it is busy (HTTP ${answer.status}) and asks to wait ${Math.ceil(pauseMs / 1000)} s, which is past the limit of ${limitMs / 1000} s; raise the server's timeout`,
  )
}
