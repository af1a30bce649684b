import type { ServerToolContext, ToolServer } from '../tool-server.ts'
import { openFileSandbox, openTestParsers } from './tier.ts'
import { callServerTool, openToolContext, type TestToolContext, type ToolAnswer } from './tool-context.ts'

/** A context whose workspace has these files. */
export async function openFileContext(
  files: Readonly<Record<string, Uint8Array | string>>,
  overrides: Partial<ServerToolContext> = {},
): Promise<TestToolContext> {
  const parsers = await openTestParsers()
  const context = await openToolContext({ parsers, ...overrides }, openFileSandbox)
  for (const [path, bytes] of Object.entries(files)) await context.workspace.put(path, Buffer.from(bytes), context.signal)
  return {
    ...context,
    async close() {
      await parsers.close()
      await context.close()
    },
  }
}

/** Calls the first tool of a server, which reads files, on one file. */
export async function readFile(
  server: ToolServer,
  bytes: Uint8Array | string,
  settings: Readonly<Record<string, unknown>> = {},
  path = 'file',
): Promise<ToolAnswer> {
  const context = await openFileContext({ [path]: bytes })
  try {
    return await callServerTool(server, server.tools[0]!.name, { file_path: path, ...settings }, context)
  } finally {
    await context.close()
  }
}
