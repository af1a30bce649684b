import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startProcess } from '../gateway/peers.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

/** A dashboard in a process of its own. */
export interface ServedRun extends AsyncDisposable {
  /** Address of the run's first page, with the token. */
  readonly url: string
  /** Milliseconds until the answer to a request below the run's API has come whole. */
  time(path: string): Promise<number>
  /** Most memory that the process had, in megabytes. */
  mostMegabytes(): number
}

/** Serves a run as `aworld-train view` does. */
export async function serveRun(path: string): Promise<ServedRun> {
  const view = startProcess(process.execPath, [main, 'view', path])
  const [url] = (await once(createInterface({ input: view.child.stdout! }), 'line')) as [string]
  const { origin, hash, searchParams } = new URL(url)
  const headers = { authorization: `Bearer ${searchParams.get('token')}` }
  return {
    url,
    async time(path) {
      const startedAt = performance.now()
      const response = await fetch(`${origin}/api/runs/${hash.slice(2)}/${path}`, { headers })
      const bytes = await response.arrayBuffer()
      if (!response.ok || bytes.byteLength === 0) throw new Error(`${path} was answered ${response.status}.`)
      return performance.now() - startedAt
    },
    mostMegabytes: () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${view.child.pid}/status`, 'utf8'))![1]) / 1024,
    [Symbol.asyncDispose]: () => view[Symbol.asyncDispose](),
  }
}
