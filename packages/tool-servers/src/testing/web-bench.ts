import { type ParserJail, ToolError } from '@aworld-train/core'
import { type OutwardOptions, openOutward } from '@aworld-train/http'
import { openSimulatedSandbox } from '@aworld-train/sandbox'
import type { ServerToolContext, ToolServer } from '../tool-server.ts'

/** Parses in this process. */
const parsers: ParserJail = {
  notices: [],
  async parse(module, input, options) {
    try {
      const { default: parse } = await import(module.href)
      return JSON.parse(JSON.stringify(await parse(new Uint8Array(input), options)))
    } catch (error) {
      throw new ToolError((error as Error).message)
    }
  },
  close: async () => {},
}

export interface WebBench {
  readonly context: ServerToolContext
  /** The text that the model reads; of a ToolError its message, marked. */
  call(tool: string, input?: Readonly<Record<string, unknown>>): Promise<string>
  close(): Promise<void>
}

/** Calls the tools of a server against an outside of the test's own. */
export async function openWebBench(server: ToolServer, options: Partial<OutwardOptions>): Promise<WebBench> {
  const { signal } = new AbortController()
  const outward = await openOutward({ services: [], ...options })
  const sandbox = await openSimulatedSandbox()
  const unused = () => {
    throw new Error('A tool of the web uses neither shell nor model.')
  }
  const context: ServerToolContext = {
    workspace: await sandbox.workspace({}, signal),
    outward,
    parsers,
    shell: unused,
    model: unused,
    signal,
  }
  return {
    context,
    async call(name, input = {}) {
      const tool = server.tools.find((each) => each.name === name)!
      try {
        const output = await tool.call(tool.input.parse(input), context)
        return tool.toText(tool.output.parse(output))
      } catch (error) {
        if (error instanceof ToolError) return `error: ${error.message}`
        throw error
      }
    },
    async close() {
      await outward.close()
      await sandbox.close()
    },
  }
}
