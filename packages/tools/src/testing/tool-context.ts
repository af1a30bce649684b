import { type Shell, ToolError } from '@aworld-train/core'
import { Browsers } from '../servers/browser/browsers.ts'
import type { ServerToolContext, ToolServer } from '../tool-server.ts'
import { noOutward, noParsers } from './open-test-server.ts'
import { openTestSandbox } from './tier.ts'

export interface TestToolContext extends ServerToolContext {
  close(): Promise<void>
}

/** A tool's context: a workspace, and the test's overrides; no network and no model otherwise. */
export async function openToolContext(overrides: Partial<ServerToolContext> = {}, openSandbox = openTestSandbox): Promise<TestToolContext> {
  const signal = overrides.signal ?? new AbortController().signal
  const sandbox = await openSandbox()
  const workspace = await sandbox.workspace({}, signal)
  let shell: Promise<Shell> | null = null
  const browser = new Browsers({ tier: sandbox.tier }).of(workspace)
  const context: TestToolContext = {
    workspace,
    tier: sandbox.tier,
    shell: () => (shell ??= workspace.shell(signal)),
    browse: (tool, input) => browser.call(tool, input, context),
    desktop: async () => null,
    outward: noOutward,
    egress: async () => Promise.reject(new ToolError('There is no way to the web.')),
    parsers: noParsers,
    model: async (role) => Promise.reject(new ToolError(`There is no model for "${role}".`)),
    show: () => {},
    signal,
    ...overrides,
    close: () => sandbox.close(),
  }
  return context
}

export interface ToolAnswer {
  /** The text that the model reads. */
  readonly text: string
  readonly output: Record<string, unknown>
}

/** Calls a tool as the server does, with its schemas on both sides. */
export async function callServerTool(
  server: ToolServer,
  name: string,
  input: Readonly<Record<string, unknown>>,
  context: ServerToolContext,
): Promise<ToolAnswer> {
  const tool = server.tools.find((one) => one.name === name)
  if (!tool) throw new Error(`${server.name} has no tool "${name}".`)
  const output = await tool.call(tool.input.parse(input), context)
  return { text: tool.toText(output), output: tool.output.strict().parse(output) }
}
