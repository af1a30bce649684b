import { setTimeout as delay } from 'node:timers/promises'
import { LeaseAnswer, type LeaseOpen, type Outward, type ParserJail, ToolError } from '@aworld-train/core'
import { Client, type FetchLike, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { type EnvironmentServer, type EnvironmentServerOptions, openEnvironmentServer } from '../host/open-environment-server.ts'
import { defineTool, type ToolServer } from '../tool-server.ts'
import { type MemorySandbox, memorySandbox } from './memory-sandbox.ts'

/** An Outward that knows no service and reaches nothing. */
export const noOutward: Outward = {
  fetch: async () => Promise.reject(new ToolError('There is no network.')),
  service: async () => Promise.reject(new ToolError('There is no service.')),
  relay: () => ({
    check: () => {},
    send: async () => Promise.reject(new ToolError('There is no network.')),
  }),
  hasService: () => false,
}

/** A ParserJail that parses nothing. */
export const noParsers: ParserJail = {
  notices: [],
  parse: async () => Promise.reject(new ToolError('There is no parser.')),
  parseNative: async () => Promise.reject(new ToolError('There is no parser.')),
  close: async () => {},
}

const Text = z.object({ text: z.string() })
const Nothing = z.object({})

/** Events of the calls of `wait`. */
export type WaitEvent = 'begun' | 'cancelled'

/** Two servers that keep lines in a file of the workspace, run commands, wait, and fail in every way. */
export function testServers(waits: WaitEvent[] = []): readonly ToolServer[] {
  const notes: ToolServer = {
    name: 'notes-server',
    scope: 'files',
    description: 'Keeps lines.',
    needs: [{ anyOf: ['paper'], remedy: 'Set PAPER_BASE_URL.' }],
    tools: [
      defineTool({
        name: 'append',
        description: 'Appends a line.',
        input: z.object({ text: z.string() }),
        output: z.object({ lines: z.array(z.string()) }),
        async call({ text }, { workspace, signal }) {
          const before = await workspace.get('notes.txt', 10_000_000, signal).catch(() => Buffer.alloc(0))
          const after = `${before}${text}\n`
          await workspace.put('notes.txt', Buffer.from(after), signal)
          return { lines: after.trimEnd().split('\n') }
        },
        toText: ({ lines }) => lines.join(','),
      }),
      defineTool({
        name: 'count',
        description: 'Counts what it is given.',
        input: z.object({ value: z.unknown() }),
        output: z.object({ size: z.int() }),
        call: async ({ value }) => ({ size: Array.isArray(value) ? value.length : 0 }),
        toText: ({ size }) => String(size),
      }),
      defineTool({
        name: 'fail',
        description: 'Fails.',
        input: z.object({ how: z.enum(['tool', 'bug']) }),
        output: Nothing,
        call: async ({ how }) => {
          throw how === 'tool' ? new ToolError('No such page; ask for another.') : new Error('the key is sk-12345')
        },
        toText: () => '',
      }),
    ],
  }
  const desk: ToolServer = {
    name: 'desk-server',
    scope: 'terminal',
    description: 'Runs commands.',
    needs: [],
    tools: [
      defineTool({
        name: 'execute',
        description: 'Runs a command.',
        input: z.object({ command: z.string() }),
        output: Text,
        async call({ command }, { shell, signal }) {
          const { output } = await (await shell()).execute(command, 30_000, signal)
          return { text: output }
        },
        toText: ({ text }) => text,
      }),
      defineTool({
        name: 'wait',
        description: 'Waits until it is cancelled.',
        input: Nothing,
        output: Nothing,
        async call(_, { signal }) {
          waits.push('begun')
          await delay(600_000, undefined, { signal }).catch(() => waits.push('cancelled'))
          return {}
        },
        toText: () => '',
      }),
    ],
  }
  return [notes, desk]
}

export interface TestServer extends EnvironmentServer {
  readonly sandbox: MemorySandbox
  readonly waits: readonly WaitEvent[]
}

export async function openTestServer(options: Partial<EnvironmentServerOptions> = {}): Promise<TestServer> {
  const sandbox = memorySandbox()
  const waits: WaitEvent[] = []
  const server = await openEnvironmentServer({ sandbox, parsers: noParsers, outward: noOutward, servers: testServers(waits), ...options })
  return { ...server, sandbox, waits }
}

export type Era = 'modern' | 'legacy'

export interface ConnectOptions {
  readonly era?: Era
  readonly token: string
  readonly headers?: Readonly<Record<string, string>>
  readonly fetch?: FetchLike
}

/** The official client, in one of the two eras of the protocol. */
export async function connectClient(url: string, { era = 'modern', token, headers = {}, fetch }: ConnectOptions): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' }, era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {})
  const requestInit = { headers: { authorization: `Bearer ${token}`, ...headers } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit, ...(fetch && { fetch }) }))
  return client
}

/** The text of a tool's answer, marked if it is an error. */
export async function callTool(client: Client, name: string, input: Record<string, unknown> = {}): Promise<string> {
  const { content, isError } = await client.callTool({ name, arguments: input })
  const text = content.map((part) => (part.type === 'text' ? part.text : part.type)).join('')
  return isError ? `error: ${text}` : text
}

/** A request to the lease API. */
export function request(server: EnvironmentServer, method: string, path: string, body?: unknown, token = server.connectionToken) {
  return fetch(new URL(path, server.url), {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body) }),
  })
}

/** Opens a lease as `leaseOpen` says, but for these changes. */
export async function openLease(server: EnvironmentServer, changes: Partial<LeaseOpen> = {}): Promise<LeaseAnswer> {
  const response = await request(server, 'POST', '/v1/leases', { ...leaseOpen, ...changes })
  return LeaseAnswer.parse(await response.json())
}

export const leaseOpen = { version: 1, rollout: 'r1', attempt: 1, task: 't1', sample: 0 } as const
