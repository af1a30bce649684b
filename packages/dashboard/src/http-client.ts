import type { EvaluationView, RolloutList, RolloutTrace, RunClient, RunHealth, RunListing, RunSummary, RunUpdate } from '@aworld-train/core'
import type { RunComparison } from './comparison.ts'
import { toSearch } from './rollout-address.ts'

/** Runs behind a dashboard server. */
export interface HttpRuns {
  list(): Promise<readonly RunListing[]>
  run(id: string): RunClient
  /** The evaluation `first` compared with `second`. */
  compare(first: string, second: string): Promise<RunComparison>
}

/** The error that a server answered with. */
class DashboardError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Asks the dashboard server at `url`, such as `http://127.0.0.1:4040`. It runs in browsers and in Node. `onConnection` is told whether the
 * server of a followed run answers.
 */
export function createHttpRuns(url: string, token: string, onConnection: (isThere: boolean) => void = () => {}): HttpRuns {
  const headers = { authorization: `Bearer ${token}` }

  async function open(path: string, signal?: AbortSignal): Promise<Response> {
    const response = await fetch(`${url}/api/${path}`, { headers, ...(signal && { signal }) })
    if (response.ok) return response
    const body = (await response.json().catch(() => null)) as { error?: { code: string; message: string } } | null
    const { code, message } = body?.error ?? { code: 'HTTP', message: `The server answered ${response.status}.` }
    throw new DashboardError(code, message)
  }
  const read = async <T>(path: string) => (await (await open(path)).json()) as T

  return {
    list: () => read<RunListing[]>('runs'),
    compare: (first, second) =>
      read<RunComparison>(`runs/${encodeURIComponent(first)}/comparison?${new URLSearchParams({ with: second })}`),
    run(id) {
      const base = `runs/${encodeURIComponent(id)}`
      return {
        summary: () => read<RunSummary>(`${base}/summary`),
        rollouts: (query) => read<RolloutList>(`${base}/rollouts?${toSearch(query)}`),
        rollout: (key) => read<RolloutTrace | null>(`${base}/rollout?${new URLSearchParams({ key })}`),
        evaluation: () => read<EvaluationView | null>(`${base}/evaluation`),
        health: (after) => read<RunHealth>(`${base}/health?after=${after}`),
        async *follow(after, signal) {
          let next = after
          while (!signal.aborted) {
            try {
              const response = await open(`${base}/events?after=${next}`, signal)
              onConnection(true)
              for await (const update of updates(response)) {
                next = update.id
                yield update
              }
            } catch (error) {
              if (signal.aborted) return
              if (error instanceof DashboardError) throw error
            }
            if (signal.aborted) return
            // The connection was lost. The next one goes on after the last event that arrived.
            onConnection(false)
            await new Promise((resolve) => setTimeout(resolve, 1_000))
          }
        },
      }
    },
  }
}

/** Reads server-sent events as the dashboard server writes them: an id, one line of data, a blank line. */
async function* updates(response: Response): AsyncGenerator<RunUpdate> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (text + value).split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      const lines = /^id: (\d+)\ndata: (.*)$/.exec(block)
      if (lines) yield { id: Number(lines[1]), event: JSON.parse(lines[2]!) as RunUpdate['event'] }
    }
  }
}
