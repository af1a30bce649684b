import { ToolError } from '@aworld-train/core'
import type { ServerToolContext, ToolServer } from '../tool-server.ts'

export interface Reading {
  /** What the model reads. */
  readonly text: string
  readonly output: Record<string, unknown>
}

/** Calls a tool of a document server on one file, with the parser in this process. */
export async function readFile(
  server: ToolServer,
  bytes: Uint8Array | string,
  settings: Readonly<Record<string, unknown>> = {},
  path = 'file',
): Promise<Reading> {
  const [tool] = server.tools
  const unused = () => {
    throw new Error('A document tool uses the workspace and the parsers only.')
  }
  const context = {
    workspace: { get: async () => Buffer.from(bytes), put: unused, run: unused, shell: unused, close: unused },
    parsers: {
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
    },
    shell: unused,
    outward: { fetch: unused, service: unused, hasService: () => false },
    model: unused,
    signal: new AbortController().signal,
  } satisfies ServerToolContext
  const output = await tool!.call(tool!.input.parse({ file_path: path, ...settings }), context)
  return { text: tool!.toText(tool!.output.parse(output)), output }
}
