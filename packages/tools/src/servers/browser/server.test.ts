import { expect, test } from 'vitest'
import { z } from 'zod'
import { openSimulatedSandbox } from '../../sandbox/simulated/simulated-sandbox.ts'
import { callTool, connectClient, openTestServer } from '../../testing/open-test-server.ts'
import { OutputFiles, pictureOf } from './output-files.ts'
import packageTools from './package-tools.json' with { type: 'json' }
import { browserServer } from './server.ts'

test('where no program of the machine runs, the status and every call say what is missing', async () => {
  const sandbox = await openSimulatedSandbox()
  const server = await openTestServer({ sandbox, servers: [browserServer] })
  const client = await connectClient(server.url, { token: server.connectionToken })
  const remedy = /starts the environment on Linux with bubblewrap \(apt-get install bubblewrap chromium-headless-shell\)/
  expect(server.status().servers[0]!.missing[0]).toMatch(remedy)
  expect(await callTool(client, 'browser-server__browser_navigate', { url: 'https://example.com' })).toMatch(remedy)
  await client.close()
  await server.close()
  await sandbox.close()
})

test('lists the tools of its package with their schemas, all but the one that runs code beside the browser', () => {
  const listed = new Map(browserServer.tools.map(({ name, input }) => [name, z.toJSONSchema(input, { io: 'input' })]))
  for (const { name, inputSchema } of packageTools) {
    const properties = listed.get(name)?.properties
    if (name === 'browser_run_code_unsafe') expect(properties).toBeUndefined()
    else expect(properties, name).toMatchObject(inputSchema.properties)
  }
})

test('files that answers link are counted for each kind', () => {
  const files = new OutputFiles()
  const time = '2026-11-28T10-51-05-115Z'
  const { text, moves } = files.rename(`### Snapshot\n- [Snapshot](.playwright-mcp/page-${time}.yml)\ntext page-${time}.yml`)
  expect(text).toBe(`### Snapshot\n- [Snapshot](.playwright-mcp/page-1.yml)\ntext page-${time}.yml`)
  expect(moves).toEqual([{ from: `.playwright-mcp/page-${time}.yml`, to: '.playwright-mcp/page-1.yml' }])
  const screenshot = files.rename(`- [Screenshot of viewport](.playwright-mcp/page-${time}.png)`).text
  expect(pictureOf(screenshot)).toEqual({ path: '.playwright-mcp/page-1.png', mimeType: 'image/png' })
  expect(files.rename(`- [Snapshot](.playwright-mcp/page-${time}.yml)`).text).toBe('- [Snapshot](.playwright-mcp/page-2.yml)')
})
