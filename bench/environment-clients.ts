import { readFileSync } from 'node:fs'
import { LeaseAnswer } from '@aworld-train/core'
import type { EnvironmentServer } from '@aworld-train/tools'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { request as undiciRequest } from 'undici'

export const percentile = (values: readonly number[], part: number) =>
  [...values].sort((a, b) => a - b)[Math.floor(part * (values.length - 1))]!

/** Sends as the client of `@aworld-train/environment` does: `fetch` would copy a body of 10 MB before it sends it. */
export async function send(url: URL, method: string, headers: Record<string, string>, body?: string | Buffer): Promise<string> {
  const response = await undiciRequest(url, { method: method as 'PUT', headers, ...(body !== undefined && { body }) })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${method} ${url} answered ${response.statusCode}: ${text}`)
  return text
}

export const request = (server: EnvironmentServer, method: string, path: string, body?: string | Buffer): Promise<string> =>
  send(new URL(path, server.url), method, { authorization: `Bearer ${server.connectionToken}`, 'content-type': 'application/json' }, body)

export async function connect(url: string, token?: string): Promise<Client> {
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  return client
}

let rollouts = 0
export async function openLease(server: EnvironmentServer): Promise<LeaseAnswer> {
  const body = JSON.stringify({ version: 1, rollout: `bench-${rollouts++}`, attempt: 0, task: 'bench', sample: 0 })
  return LeaseAnswer.parse(JSON.parse(await request(server, 'POST', '/v1/leases', body)))
}

/** Memory of a process that no other shares with it, and its part of what others share, in megabytes. */
export function proportionalMegabytes(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
    } catch {
      return 0
    }
  })
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024
}
