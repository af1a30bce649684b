import { ToolError } from '@aworld-train/core'
import type { ServerToolContext, ToolServer } from '../tool-server.ts'
import { memorySandbox } from './memory-sandbox.ts'
import { noOutward } from './open-test-server.ts'
import { parsersHere } from './parsers-here.ts'
import { callServerTool, type TestToolContext, type ToolAnswer } from './tool-context.ts'

/** A context whose workspace has these files. */
export async function openFileContext(
  files: Readonly<Record<string, Uint8Array | string>>,
  overrides: Partial<ServerToolContext> = {},
): Promise<TestToolContext> {
  const { signal } = new AbortController()
  const workspace = await memorySandbox().workspace({}, signal)
  for (const [path, bytes] of Object.entries(files)) await workspace.put(path, Buffer.from(bytes), signal)
  return {
    workspace,
    parsers: parsersHere,
    shell: () => workspace.shell(signal),
    outward: noOutward,
    model: async (role) => Promise.reject(new ToolError(`There is no model for "${role}".`)),
    signal,
    ...overrides,
    close: async () => {},
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
  return callServerTool(server, server.tools[0]!.name, { file_path: path, ...settings }, context)
}
