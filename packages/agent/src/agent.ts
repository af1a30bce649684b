import { isRecord, type McpConfig, TrainError } from '@aworld-train/core'
import { AgentConfig, type AgentConfigOptions } from './agent-config.ts'
import { collectAgents } from './collect-agents.ts'
import type { AgentHooks } from './hooks.ts'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'
import { checkCallable, Participant } from './participant.ts'
import type { Tool } from './tool.ts'

interface AgentFields {
  /** Unnamed agents are called `agent`; several in one program are numbered. */
  readonly name?: string | undefined
  /** Purpose of this agent, for other agents that have it as a tool. */
  readonly desc?: string | undefined
  readonly conf?: AgentConfig | AgentConfigOptions | undefined
  readonly systemPrompt?: string | undefined
  readonly mcpConfig?: McpConfig | undefined
  /** Servers of `mcpConfig` to use; all if absent or empty. */
  readonly mcpServers?: readonly string[] | undefined
  /** Tools to hide: server name to tool names. */
  readonly blackToolActions?: Readonly<Record<string, readonly string[]>> | undefined
  readonly tools?: readonly Tool[] | undefined
  /** Agents and swarms this one may call as tools, or names of agents in the same swarm. */
  readonly agents?: readonly (Participant | string)[] | undefined
  readonly agentNames?: readonly (Participant | string)[] | undefined
  readonly hooks?: AgentHooks | readonly AgentHooks[] | undefined
  /** Most model calls of one run. Default: `conf.maxSteps`. */
  readonly maxTurns?: number | undefined
}

export type AgentOptions = EitherCase<AgentFields>

const optionNames = [
  'name',
  'desc',
  'conf',
  'systemPrompt',
  'mcpConfig',
  'mcpServers',
  'blackToolActions',
  'tools',
  'agents',
  'agentNames',
  'hooks',
  'maxTurns',
] satisfies (keyof AgentFields)[]

const withoutEffect = ['agentId', 'needReset', 'stepReset', 'waitToolResult', 'eventDriven', 'eventHandlerName', 'llmRetryDelay']

const refused = {
  toolNames: 'pass the tools themselves in "tools".',
  useToolsInPrompt: 'tools are sent in the request, and the chat template of the model writes them into the prompt.',
  modelOutputParser: 'change the reply in an afterModel hook.',
  toolAggregateFunc: 'change results in an afterTool hook.',
  skillConfigs: 'put the text of the skill into "systemPrompt".',
  llmMaxAttempts: 'set "maxRetries" in the AgentConfig.',
  enableSubagent: 'pass the agents in "agents".',
  subagentSearchPaths: 'pass the agents in "agents".',
  feedbackToolResult: 'results always go back to the model.',
  sandbox: 'declare its servers in "mcpConfig".',
  task: 'pass the task to Runners.run or to the trainer.',
}

const neutral = { feedbackToolResult: true }

/**
 * A model with a system prompt and tools. Options are in camelCase or AWorld's snake_case. An unknown or
 * ill-typed option throws CONFIG_INVALID.
 */
export class Agent extends Participant {
  readonly kind = 'agent'
  readonly name: string
  /** Whether the options had a `name`, which must then be unique in a program. */
  readonly named: boolean
  readonly desc: string | undefined
  readonly conf: AgentConfig
  readonly systemPrompt: string | undefined
  readonly mcpConfig: McpConfig | undefined
  readonly mcpServers: readonly string[] | undefined
  readonly blackToolActions: Readonly<Record<string, readonly string[]>> | undefined
  readonly tools: readonly Tool[]
  readonly agents: readonly (Participant | string)[]
  readonly hooks: readonly AgentHooks[]
  readonly maxTurns: number | undefined
  /** AWorld's options among these that have no effect here. */
  readonly ignored: readonly string[]

  constructor(input: AgentOptions = {}) {
    super()
    const { options, ignored } = readNamedOptions(input, { owner: 'Agent', optionNames, withoutEffect, refused, neutral })
    this.named = options['name'] !== undefined
    this.name = this.named ? readName(options['name']) : 'agent'
    const owner = `Agent "${this.name}"`
    this.desc = readText(owner, 'desc', options['desc'])
    this.conf = new AgentConfig((options['conf'] ?? {}) as AgentConfigOptions)
    this.systemPrompt = readText(owner, 'systemPrompt', options['systemPrompt']) ?? this.conf.fields.systemPrompt
    this.mcpConfig = readMcpConfig(owner, options['mcpConfig'])
    this.mcpServers = readServers(owner, options['mcpServers'], this.mcpConfig)
    this.blackToolActions = readBlackToolActions(owner, options['blackToolActions'])
    this.tools = readTools(owner, options['tools'])
    this.agents = [...readAgents(owner, 'agents', options['agents']), ...readAgents(owner, 'agentNames', options['agentNames'])]
    collectAgents([this])
    this.hooks = readHooks(owner, options['hooks'])
    this.maxTurns = readMaxTurns(owner, options['maxTurns']) ?? this.conf.maxSteps
    this.ignored = [...ignored, ...this.conf.ignored]
  }
}

function invalid(owner: string, option: string, expected: string, value: unknown): TrainError {
  return new TrainError('CONFIG_INVALID', `${owner}: "${option}" must be ${expected}, and is ${describeValue(value)}.`)
}

function readName(value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= 128) return value.trim()
  throw new TrainError(
    'CONFIG_INVALID',
    `Agent: the name is ${describeValue(value)}; give it a text of 1 to 128 characters, or leave it out.`,
  )
}

function readText(owner: string, option: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value || undefined
  throw invalid(owner, option, 'a text', value)
}

function readList(owner: string, option: string, value: unknown): readonly unknown[] {
  if (value === undefined) return []
  if (Array.isArray(value)) return value
  throw invalid(owner, option, 'an array', value)
}

function readMcpConfig(owner: string, value: unknown): McpConfig | undefined {
  if (value === undefined) return undefined
  if (!isRecord(value)) throw invalid(owner, 'mcpConfig', 'an object { mcpServers: { … } }', value)
  const servers = value['mcpServers']
  if (servers === undefined && Object.keys(value).length === 0) return undefined
  if (!isRecord(servers)) throw invalid(owner, 'mcpConfig.mcpServers', 'an object of server name to server', servers)
  return Object.keys(servers).length === 0 ? undefined : (value as unknown as McpConfig)
}

function readServers(owner: string, value: unknown, mcpConfig: McpConfig | undefined): readonly string[] | undefined {
  const names = readList(owner, 'mcpServers', value)
  if (names.length === 0) return undefined
  for (const name of names) if (typeof name !== 'string') throw invalid(owner, 'mcpServers', 'an array of server names', name)
  if (!mcpConfig) {
    throw new TrainError(
      'CONFIG_INVALID',
      `${owner} names the MCP servers ${names.join(', ')} but has no mcpConfig; pass the configuration that describes them.`,
    )
  }
  return names as string[]
}

function readBlackToolActions(owner: string, value: unknown): Readonly<Record<string, readonly string[]>> | undefined {
  if (value === undefined) return undefined
  const fits =
    isRecord(value) && Object.values(value).every((names) => Array.isArray(names) && names.every((name) => typeof name === 'string'))
  if (!fits) throw invalid(owner, 'blackToolActions', 'an object of server name to an array of tool names', value)
  return Object.keys(value).length === 0 ? undefined : (value as Record<string, string[]>)
}

function readTools(owner: string, value: unknown): readonly Tool[] {
  const names = new Set<string>()
  const tools = readList(owner, 'tools', value)
  for (const entry of tools) {
    if (!isRecord(entry) || typeof entry['invoke'] !== 'function' || !isRecord(entry['definition'])) {
      throw invalid(owner, 'tools', 'an array of what tool() returns', entry)
    }
    const name = String(entry['name'])
    if (names.has(name)) throw new TrainError('CONFIG_INVALID', `${owner} has two tools named "${name}"; rename one.`)
    names.add(name)
  }
  return tools as readonly Tool[]
}

function readAgents(owner: string, option: string, value: unknown): readonly (Participant | string)[] {
  const agents = readList(owner, option, value)
  for (const entry of agents) {
    if (entry instanceof Participant) checkCallable(entry)
    else if (typeof entry !== 'string' || entry === '') throw invalid(owner, option, 'an array of agents, swarms or their names', entry)
  }
  return agents as readonly (Participant | string)[]
}

const hookNames = ['beforeModel', 'afterModel', 'beforeTool', 'afterTool']

function readHooks(owner: string, value: unknown): readonly AgentHooks[] {
  const list = value === undefined ? [] : Array.isArray(value) ? value : [value]
  for (const hooks of list) {
    const { options } = readNamedOptions(hooks, { owner: `${owner}, hooks`, optionNames: hookNames })
    for (const [name, hook] of Object.entries(options))
      if (typeof hook !== 'function') throw invalid(owner, `hooks.${name}`, 'a function', hook)
  }
  return list as readonly AgentHooks[]
}

function readMaxTurns(owner: string, value: unknown): number | undefined {
  if (value === undefined || (Number.isInteger(value) && Number(value) >= 1)) return value as number | undefined
  throw invalid(owner, 'maxTurns', 'a whole number of at least 1', value)
}
