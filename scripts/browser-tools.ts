import { Client, InMemoryTransport } from '@modelcontextprotocol/client'
import { createConnection } from '@playwright/mcp'

/** The tools of `@playwright/mcp` as it lists them, which needs no browser. */
export async function browserTools(): Promise<string> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  const server = await createConnection()
  await server.connect(theirs as unknown as Parameters<typeof server.connect>[0])
  const client = new Client({ name: 'aworld-train', version: '0.1.0' })
  await client.connect(ours)
  const { tools } = await client.listTools()
  await client.close()
  return `${JSON.stringify(
    tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    null,
    2,
  )}\n`
}
