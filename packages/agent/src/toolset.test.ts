import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { createAgentGraph } from './agent-graph.ts'
import { createProgramRun } from './agent-program.ts'
import { createLocalContext } from './local-context.ts'
import { createModelTransport } from './model-client.ts'
import { tool } from './tool.ts'
import { createToolset } from './toolset.ts'

test('whatever a model writes as a call, it gets one answer that is counted once', async () => {
  const add = tool({ name: 'add', parameters: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b })
  const agent = new Agent({ tools: [add], agents: [new Agent({ name: 'helper' })] })
  const graph = createAgentGraph(agent)
  const task = { version: 1 as const, id: 't', hash: '', input: 'x', data: {}, dataSource: '', extraInfo: {} }
  const { signal } = new AbortController()
  const local = createLocalContext({ task, graph, signal, limits: {}, environment: undefined, policy: undefined })
  const transport = createModelTransport()
  const toolset = await createToolset(agent, local.context.invoke('agent'), createProgramRun(graph, local.context, transport, []))
  let calls = 0
  const names = fc.oneof(fc.constantFrom('add', 'Add', 'helper', ''), fc.string())
  const texts = fc.oneof(
    fc.string(),
    fc.json(),
    fc.record({ a: fc.jsonValue(), b: fc.double() }).map((value) => JSON.stringify(value)),
  )
  await fc.assert(
    fc.asyncProperty(names, texts, async (name, text) => {
      fc.pre(name !== 'helper' || !text.includes('content'))
      const result = await toolset.call({ id: 'c', name, arguments: text }, { turn: 0, place: 0 }, signal)
      calls += 1
      expect(local.toolCalls).toHaveLength(calls)
      expect(local.toolCalls.at(-1)).toMatchObject({ name, arguments: text, ...result })
      if (result.isError) expect(result.content).toMatch(/^Error: ./)
      else expect(name).toBe('add')
    }),
    { numRuns: 300 },
  )
  await transport.close()
})
