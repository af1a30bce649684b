// The same load without us: every rollout is a loop of fetch and an MCP client, as many at once as there are slots. Prints one JSON line.
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { systemPrompt, toolServer } from './agent.ts'
import { makeLoad } from './load.ts'
import { measure } from './measure.ts'
import type { RunLoadOptions, RunLoadResult } from './run-load.ts'

interface Completion {
  readonly choices: readonly [
    { readonly message: { readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[] } },
  ]
}

const startedAt = performance.now()
const { upstreamPort, load, slots } = JSON.parse(process.argv[2] ?? '{}') as RunLoadOptions
const client = new Client({ name: 'bench', version: '1.0.0' })
const env = { NODE_OPTIONS: process.env['NODE_OPTIONS'] ?? '' }
await client.connect(new StdioClientTransport({ command: process.execPath, args: [...process.execArgv, toolServer], env }))
const { tools } = await client.listTools()
const offered = tools.map(({ name, description, inputSchema }) => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
}))

/** Resolves to the turns that it took. */
async function rollout(plan: string): Promise<number> {
  const messages: object[] = [
    { role: 'system', content: systemPrompt },
    { role: 'user', content: `plan ${plan}` },
  ]
  for (let turns = 1; ; turns++) {
    const response = await fetch(`http://127.0.0.1:${upstreamPort}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'bench', messages, tools: offered, temperature: 1 }),
    })
    const { message } = ((await response.json()) as Completion).choices[0]
    const [call] = message.tool_calls ?? []
    if (!call) return turns
    const { content } = await client.callTool({ name: 'step', arguments: JSON.parse(call.function.arguments) })
    messages.push(message, { role: 'tool', tool_call_id: call.id, content: content[0]?.type === 'text' ? content[0].text : '' })
  }
}

await rollout('0')
const startSeconds = (performance.now() - startedAt) / 1000
await Promise.all(Array.from({ length: slots }, () => rollout('500:500 500')))
const planned = makeLoad(load)
const queue = planned.entries()
const turns: number[] = []
const slot = async () => {
  for (const [index, { plan }] of queue) turns[index] = await rollout(plan)
}
const [, measured] = await measure(() => Promise.all(Array.from({ length: slots }, slot)))
const result: RunLoadResult = {
  ...measured,
  startSeconds,
  turns: turns.reduce((sum, each) => sum + each, 0),
  failed: turns.filter((each, index) => each !== planned[index]!.plan.split(' ').length).length,
  lost: [],
}
process.stdout.write(`${JSON.stringify(result)}\n`)
await client.close()
