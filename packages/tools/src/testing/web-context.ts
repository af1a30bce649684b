import { ToolError } from '@aworld-train/core'
import { type OutwardOptions, openOutward } from '@aworld-train/http'
import type { ServerToolContext, ToolServer } from '../tool-server.ts'
import { openTestParsers } from './tier.ts'
import { callServerTool, openToolContext, type TestToolContext } from './tool-context.ts'

/** The context of a tool of the web, with an Outward of the test's own. */
export async function openWebContext(
  options: Partial<OutwardOptions>,
  overrides: Partial<ServerToolContext> = {},
): Promise<TestToolContext> {
  const outward = await openOutward({ services: [], ...options })
  const parsers = await openTestParsers()
  const context = await openToolContext({ outward, parsers, ...overrides })
  return {
    ...context,
    async close() {
      await outward.close()
      await parsers.close()
      await context.close()
    },
  }
}

export interface WebBench {
  readonly context: TestToolContext
  /** Calls a tool. Returns the text that the model reads; for a ToolError its marked message. */
  call(tool: string, input?: Readonly<Record<string, unknown>>): Promise<string>
  close(): Promise<void>
}

/** Calls the tools of a server with an Outward of the test's own. */
export async function openWebBench(server: ToolServer, options: Partial<OutwardOptions>): Promise<WebBench> {
  const context = await openWebContext(options)
  return {
    context,
    call: async (name, input = {}) =>
      callServerTool(server, name, input, context).then(
        ({ text }) => text,
        (error: unknown) => {
          if (error instanceof ToolError) return `error: ${error.message}`
          throw error
        },
      ),
    close: context.close,
  }
}
