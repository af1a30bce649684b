import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { RolloutState } from '@aworld-train/core'
import type { RolloutService } from './rollout-service.ts'

export interface EventStreamOptions {
  readonly service: RolloutService
  readonly response: ServerResponse
  readonly signal: AbortSignal
  /** Only events of this rollout, with which the stream ends. */
  readonly rollout: string | undefined
  /** Id of the last event that the client has. */
  readonly after: string | undefined
  readonly keepAwakeMs: number
}

const running = ({ status }: RolloutState) => status === 'queued' || status === 'running'

const textOf = ({ id, status, error }: RolloutState) => `event: rollout-state\ndata: ${JSON.stringify({ id, status, error })}\n\n`

/**
 * Answers with server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). Each is a RunEvent named by its type.
 * `rollout-state` opens and ends the stream of one rollout; `events-lost` says that some events in between were forgotten.
 */
export async function streamEvents(options: EventStreamOptions): Promise<void> {
  const { service, response, signal, rollout, after, keepAwakeMs } = options
  const opening = rollout === undefined ? null : service.get(rollout)
  const end = new AbortController()
  const entries = service.events({ rollout, after: after ?? (rollout === undefined ? undefined : ''), end: end.signal }, signal)
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  response.write(`: events\n\n${opening && running(opening) ? textOf(opening) : ''}`)
  const awake = setInterval(() => response.write(': waiting\n\n'), keepAwakeMs)
  const ending = opening && Promise.resolve(running(opening) ? service.wait(opening.id, { signal }) : opening).then(textOf)
  const over = () => end.abort()
  ending?.then(over, over)
  try {
    for await (const entry of entries) {
      const text =
        'lost' in entry
          ? 'event: events-lost\ndata: {}\n\n'
          : `id: ${entry.id}\nevent: ${entry.event.type}\ndata: ${JSON.stringify(entry.event)}\n\n`
      if (!response.write(text)) await once(response, 'drain', { signal })
    }
    if (ending && !signal.aborted) response.write(await ending)
  } catch (cause) {
    if (!signal.aborted) throw cause
  } finally {
    clearInterval(awake)
    response.end()
  }
}
