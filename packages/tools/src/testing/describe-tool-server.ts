import { ToolError } from '@aworld-train/core'
import { naughtyStrings } from '@aworld-train/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ServerTool, ServerToolContext, ToolServer } from '../tool-server.ts'
import { callServerTool, openToolContext, type TestToolContext } from './tool-context.ts'

export interface DescribeToolServerOptions {
  readonly server: ToolServer
  /** A successful call of each tool. */
  readonly examples: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Prepares a context: the files that the examples read, and the answers in place of the network. */
  readonly open?: ((overrides: Partial<ServerToolContext>) => Promise<TestToolContext>) | undefined
  /** A call that takes long, to be cancelled. */
  readonly slow?: { readonly tool: string; readonly input: Readonly<Record<string, unknown>> } | undefined
}

interface PropertySchema {
  readonly type?: string | undefined
  readonly description?: string | undefined
  readonly anyOf?: readonly PropertySchema[] | undefined
}

/** The tests that every tool server passes. */
export function describeToolServer({ server, examples, open = openToolContext, slow }: DescribeToolServerOptions): void {
  describe(`tool server: ${server.name}`, () => {
    let context: TestToolContext
    beforeAll(async () => {
      context = await open({})
    })
    afterAll(() => context?.close())

    test('has an example of each tool', () => {
      expect(Object.keys(examples).sort()).toEqual(server.tools.map(({ name }) => name).sort())
    })

    test('describes itself, its tools and their parameters', () => {
      expect(server.description).toMatch(/\.$/)
      for (const tool of server.tools) {
        expect(tool.description, tool.name).toMatch(/\.$/)
        for (const [name, { description = '' }] of propertiesOf(tool)) expect(description, `${tool.name}.${name}`).toMatch(/\.$/)
      }
    })

    test('has schemas without references, which every client reads', () => {
      for (const { input, output, name } of server.tools)
        for (const schema of [z.toJSONSchema(input, { io: 'input' }), z.toJSONSchema(output)])
          expect(JSON.stringify(schema), name).not.toMatch(/"\$ref"/)
    })

    test('names the parameter whose type is wrong', () => {
      for (const tool of server.tools)
        for (const [name] of propertiesOf(tool))
          for (const value of [{ wrong: true }, Symbol('wrong')]) {
            const { error } = tool.input.safeParse({ ...examples[tool.name], [name]: value })
            expect(error?.issues[0]?.path[0], `${tool.name}.${name}`).toBe(name)
          }
    })

    test.each(server.tools.map(({ name }) => [name]))('%s answers as its schema says, twice the same text', async (name) => {
      const texts = await Promise.all(
        [1, 2].map(async () => {
          const fresh = await open({})
          try {
            return (await callServerTool(server, name, examples[name]!, fresh)).text
          } finally {
            await fresh.close()
          }
        }),
      )
      expect(texts[0]).not.toBe('')
      expect(texts[1]).toBe(texts[0])
    })

    // In a jail, each parse is a process.
    test('answers naughty strings with a result or an error for the model', { timeout: 600_000 }, async () => {
      for (const tool of server.tools)
        for (const [name, { type, anyOf }] of propertiesOf(tool))
          for (const value of type === 'string' || anyOf?.some((one) => one.type === 'string') ? naughtyStrings : []) {
            const input = { ...examples[tool.name], [name]: value }
            if (!tool.input.safeParse(input).success) continue
            const outcome = await callServerTool(server, tool.name, input, context).catch((error: unknown) => error)
            if (outcome instanceof Error) expect(outcome, `${tool.name}.${name}: ${JSON.stringify(value)}`).toBeInstanceOf(ToolError)
          }
    })

    if (slow)
      test(`${slow.tool} ends at once when it is cancelled`, async () => {
        const controller = new AbortController()
        const cancelled = await open({ signal: controller.signal })
        try {
          const call = callServerTool(server, slow.tool, slow.input, cancelled).catch((error: unknown) => error)
          await new Promise((resolve) => setTimeout(resolve, 100))
          const begin = performance.now()
          const reason = new Error('cancelled')
          controller.abort(reason)
          expect(await call).toBe(reason)
          expect(performance.now() - begin).toBeLessThan(10_000)
        } finally {
          await cancelled.close()
        }
      })
  })
}

function propertiesOf({ input }: ServerTool): [string, PropertySchema][] {
  const { properties = {} } = z.toJSONSchema(input, { io: 'input' })
  return Object.entries(properties) as [string, PropertySchema][]
}
