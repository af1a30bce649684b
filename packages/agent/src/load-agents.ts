import { readFile } from 'node:fs/promises'
import { isRecord, TrainError } from '@aworld-train/core'
import { parse } from 'yaml'
import { Agent, type AgentOptions } from './agent.ts'
import { createSwarm, toSwarm } from './load-swarm.ts'
import { describeValue, readNamedOptions } from './named-options.ts'
import type { Swarm } from './swarm.ts'

/** The agents of a file by name, and their program: the `swarm` section, else all of them in order. */
export interface LoadedAgents {
  readonly agents: Readonly<Record<string, Agent>>
  /** One agent alone, or the swarm. */
  readonly source: Agent | Swarm
}

export interface LoadAgentsOptions {
  /** Values of `${NAME}`. Default: the process environment. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined
  /** Origin of the configuration, for messages. */
  readonly origin?: string | undefined
}

type Mapping = Record<string, unknown>

const invalid = (origin: string, message: string, cause?: unknown) =>
  new TrainError('CONFIG_INVALID', `${origin}: ${message}`, cause === undefined ? {} : { cause })

/** Reads AWorld's YAML of agents (`agents`, `swarm`, `vars`, `${ENV}`). Rejects with CONFIG_INVALID naming the file and the key. */
export async function loadAgentsFromYaml(path: string, options: LoadAgentsOptions = {}): Promise<LoadedAgents> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw invalid(path, `cannot be read: ${error.message}`, error)
  })
  let data: unknown
  try {
    data = parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    throw invalid(path, `is not valid YAML: ${(error as Error).message}`, error)
  }
  return loadAgentsFromObject(data, { origin: path, ...options })
}

/** Reads the same from an object. */
export function loadAgentsFromObject(
  data: unknown,
  { environment = process.env, origin = 'agents' }: LoadAgentsOptions = {},
): LoadedAgents {
  if (Array.isArray(data) && data.some((entry) => isRecord(entry) && '_target_' in entry)) {
    throw invalid(origin, 'lists agent loops by "_target_"; name the TypeScript module of the agent to the trainer instead.')
  }
  if (!isRecord(data)) throw invalid(origin, `must hold a mapping with "agents", and holds ${describeValue(data)}.`)
  const { options } = readNamedOptions(data, { owner: origin, optionNames: ['agents', 'swarm', 'vars'] })
  const vars = options['vars'] ?? {}
  if (!isRecord(vars)) throw invalid(origin, `"vars" must be a mapping, and is ${describeValue(vars)}.`)
  const fill = (value: unknown) => substitute(value, { ...vars }, environment, origin)
  const described = fill(options['agents'])
  if (!isRecord(described) || Object.keys(described).length === 0) {
    throw invalid(origin, `"agents" must be a mapping of at least one name to its options, and is ${describeValue(described)}.`)
  }
  const agents = Object.fromEntries(Object.entries(described).map(([name, entry]) => [name, toAgent(name, entry, origin)]))
  return { agents, source: toSource(agents, fill(options['swarm']), origin) }
}

/** Reads an agent. Its model fields may stand beside the agent's own, under `config`, or under `llm_config`. */
function toAgent(name: string, entry: unknown, origin: string): Agent {
  if (!isRecord(entry)) throw invalid(origin, `agent "${name}" must be a mapping, and is ${describeValue(entry)}.`)
  const { config, conf, llm_config, llmConfig, ...rest } = entry
  const outer = config ?? conf ?? {}
  if (!isRecord(outer)) throw invalid(origin, `"config" of agent "${name}" must be a mapping, and is ${describeValue(outer)}.`)
  const inner = llm_config ?? llmConfig
  try {
    const merged = inner === undefined || inner === null ? outer : { ...outer, llmConfig: inner }
    return new Agent({ name, ...rest, conf: merged } as AgentOptions)
  } catch (error) {
    throw invalid(origin, `agent "${name}": ${(error as Error).message}`, error)
  }
}

function toSource(agents: Readonly<Record<string, Agent>>, swarm: unknown, origin: string): Agent | Swarm {
  const all = Object.values(agents)
  if (swarm === undefined || swarm === null) return all.length === 1 ? all[0]! : createSwarm(all, {}, origin)
  return toSwarm(swarm, agents, origin)
}

/** Replaces `${vars.name}` and `${NAME}` in every text. A text that is only one `${vars.name}` takes the value as it is. */
function substitute(value: unknown, vars: Mapping, environment: LoadAgentsOptions['environment'] & object, origin: string): unknown {
  if (Array.isArray(value)) return value.map((entry) => substitute(entry, vars, environment, origin))
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, substitute(entry, vars, environment, origin)]))
  }
  if (typeof value !== 'string') return value
  const whole = /^\$\{vars\.(\w+)\}$/.exec(value)
  if (whole && Object.hasOwn(vars, whole[1]!)) return vars[whole[1]!]
  return value.replace(/\$\{(vars\.)?(\w+)\}/g, (_, ofVars: string | undefined, name: string) => {
    const found = ofVars ? (Object.hasOwn(vars, name) ? vars[name] : undefined) : environment[name]
    if (found !== undefined) return String(found)
    throw invalid(origin, `\${${ofVars ?? ''}${name}} has no value; ${ofVars ? 'add it under "vars"' : 'set it in the environment'}.`)
  })
}
