import type { ToolDefinition } from '@aworld-train/core'
import type { ToolChoice } from '../call.ts'
import { badRequest } from '../failure.ts'

/** The tool choice of a request, before it is checked against the tools. */
export interface RequestedChoice {
  readonly kind: ToolChoice['kind']
  readonly name?: string | undefined
  readonly allowed?: readonly string[] | undefined
}

const none: ReadonlySet<string> = new Set()

/** Removes hosted tools from a choice, because they are left out of the prompt. A choice of a hosted tool lets the policy decide. */
function withoutHosted(choice: RequestedChoice, tools: readonly ToolDefinition[], hosted: ReadonlySet<string>): RequestedChoice {
  if (hosted.size === 0) return choice
  const names = new Set(tools.map(({ name }) => name))
  const isHosted = (name: string) => hosted.has(name) && !names.has(name)
  const { kind, name, allowed } = choice
  if (name !== undefined && isHosted(name)) return { kind: 'auto' }
  if (kind === 'required' && tools.length === 0) return { kind: 'auto' }
  return allowed ? { ...choice, allowed: allowed.filter((each) => !isHosted(each)) } : choice
}

/** Returns `choice` as a choice among `tools`. Throws GATEWAY_BAD_REQUEST if no tool can meet it. */
export function checkToolChoice(
  choice: RequestedChoice,
  tools: readonly ToolDefinition[],
  parallel: boolean,
  hosted: ReadonlySet<string> = none,
  path = 'tool_choice',
): ToolChoice {
  const { kind, name, allowed } = withoutHosted(choice, tools, hosted)
  const toolNames = new Set(tools.map((tool) => tool.name))
  if ((kind === 'required' || kind === 'named') && tools.length === 0) {
    throw badRequest(`"${path}" asks for a call, but "tools" is empty; send the tools, or leave "${path}" out.`, path)
  }
  for (const toolName of name === undefined ? (allowed ?? []) : [name]) {
    if (!toolNames.has(toolName)) {
      throw badRequest(`"${path}" names "${toolName}", which "tools" does not hold; known are: ${[...toolNames].join(', ')}.`, path)
    }
  }
  if (allowed === undefined) return name === undefined ? { kind, parallel } : { kind, name, parallel }
  if (allowed.length === 0) return { kind: 'none', parallel }
  const [only] = allowed
  if (kind === 'required' && allowed.length === 1 && only !== undefined) return { kind: 'named', name: only, parallel, allowed }
  return { kind, parallel, allowed }
}
