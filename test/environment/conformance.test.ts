import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ToolError } from '@aworld-train/core'
import { defineTool, type EnvironmentServer, type ToolServer } from '@aworld-train/tools'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { openTestServer } from '../../packages/tools/src/testing/open-test-server.ts'
import { installLocked } from '../support/install-locked.ts'

const folder = fileURLToPath(new URL('conformance', import.meta.url))

/** Checks that fail because a feature is not offered: scenarios, or checks of one, and the reason. */
const notOffered: readonly (readonly [RegExp, string])[] = [
  [/^prompts-|\/sep-2549-prompts-/, 'there are no prompts'],
  [/^resources-|\/sep-2549-resources-/, 'there are no resources'],
  [/^completion-complete\//, 'nothing is completed'],
  [/^logging-set-level\/|^tools-call-with-(logging|progress)\/|-no-log-without-loglevel$/, 'tools neither log nor report progress'],
  [/^tools-call-(image|audio|embedded-resource|mixed-content)\//, 'tools answer with text and typed output'],
  [/^tools-call-(sampling|elicitation)\/|^elicitation-|^input-required-result-/, 'tools ask the client for nothing'],
  [
    /^server-stateless\/sep-2575-(server-rejects-undeclared|missing-capability|http-server-no-independent)/,
    'tools need no capability of the client',
  ],
  [/^tasks-/, 'tasks are an extension'],
  [/^http-custom-header-server-validation\//, 'no tool takes an argument from a header'],
  [/^json-schema-2020-12\//, 'schemas are made from types, not written by hand'],
]

const Text = z.object({ text: z.string() })
const Nothing = z.object({})
const fixture: ToolServer = {
  name: 'fixture-server',
  scope: 'files',
  description: 'What the suite calls.',
  needs: [],
  tools: [
    defineTool({
      name: 'test_simple_text',
      description: 'Answers.',
      input: Nothing,
      output: Text,
      call: async () => ({ text: 'This is a simple text response for testing.' }),
      toText: ({ text }) => text,
    }),
    defineTool({
      name: 'test_error_handling',
      description: 'Fails.',
      input: Nothing,
      output: Text,
      call: () => Promise.reject(new ToolError('This tool intentionally returns an error for testing')),
      toText: ({ text }) => text,
    }),
  ],
}

/** The suite knows neither tokens nor our names of tools: both are put in on the way. */
function openRelay(server: EnvironmentServer) {
  const prefix = `${fixture.name}__`
  const relay = createServer(async (incoming, outgoing) => {
    const { 'content-length': _length, 'mcp-name': name, ...headers } = incoming.headers
    const body = Buffer.concat(await incoming.toArray())
      .toString()
      .replaceAll('"test_', `"${prefix}test_`)
    const forwarded = request(server.url, {
      method: incoming.method,
      headers: {
        ...headers,
        authorization: `Bearer ${server.connectionToken}`,
        ...(name !== undefined && { 'mcp-name': String(name).replace(/^test_/, `${prefix}test_`) }),
        ...(body !== '' && { 'content-length': Buffer.byteLength(body) }),
      },
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    forwarded.on('response', async (response) => {
      const { 'content-length': _, ...answered } = response.headers
      outgoing.writeHead(response.statusCode!, answered)
      for await (const chunk of response.setEncoding('utf8')) outgoing.write(chunk.replaceAll(prefix, ''))
      outgoing.end()
    })
    forwarded.end(body)
  })
  return new Promise<{ readonly url: string; close(): void }>((resolve) =>
    relay.listen(0, '127.0.0.1', () => {
      const { port } = relay.address() as AddressInfo
      resolve({ url: `http://127.0.0.1:${port}/mcp`, close: () => void relay.close() })
    }),
  )
}

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

let results: string
beforeAll(async () => {
  await installLocked(folder)
  results = await mkdtemp(join(tmpdir(), 'conformance-'))
})
afterAll(() => rm(results, { recursive: true }))

/** Every check of a run: `scenario/check`, and whether it failed. */
async function runSuite(url: string, revision: string): Promise<(readonly [string, Check])[]> {
  const script = join(folder, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js')
  const output = join(results, revision)
  const args = [script, 'server', '--url', url, '--requirements', revision, '--output-dir', output]
  // Its exit code counts features that are not offered.
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' }, maxBuffer: 2 ** 26 }).catch(() => {})
  const scenarios = await readdir(output)
  const checks = await Promise.all(
    scenarios.map(async (name) => {
      const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
      const list = JSON.parse(await readFile(join(output, name, 'checks.json'), 'utf8')) as Check[]
      return list.map((check) => [`${scenario}/${check.id}`, check] as const)
    }),
  )
  return checks.flat()
}

it('the official suite passes in both eras, but for features that are not offered', async () => {
  const server = await openTestServer({ servers: [fixture] })
  const relay = await openRelay(server)
  const unused = new Set(notOffered)
  try {
    for (const revision of ['2025-11-25', '2026-07-28']) {
      const checks = await runSuite(relay.url, revision)
      const failed = checks.filter(([, { status }]) => status === 'FAILURE')
      const unexpected = failed.filter(([name]) => {
        const row = notOffered.find(([pattern]) => pattern.test(name))
        if (row) unused.delete(row)
        return row === undefined
      })
      expect(unexpected.map(([name, { errorMessage }]) => `${revision} ${name}: ${errorMessage}`)).toEqual([])
      const passed = checks.filter(([, { status }]) => status === 'SUCCESS').map(([name]) => name.split('/')[0])
      for (const scenario of ['tools-list', 'tools-call-simple-text', 'tools-call-error', 'dns-rebinding-protection'])
        expect(passed).toContain(scenario)
    }
    expect([...unused].map(([pattern]) => String(pattern))).toEqual([])
  } finally {
    relay.close()
    await server.close()
  }
})
