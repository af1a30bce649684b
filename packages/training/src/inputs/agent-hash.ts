import { stableHash, TrainError } from '@aworld-train/core'
import type { AgentIdentity } from '@aworld-train/rollout'
import { moduleParts } from './agent-parts.ts'
import type { LoadedAgent } from './loaded-agent.ts'

/** Throws CONFIG_INVALID for a live object, which no other process can have. */
export function requireNamed({ files }: Pick<LoadedAgent, 'files'>): void {
  if (files.length > 0) return
  throw new TrainError(
    'CONFIG_INVALID',
    'The agent is a live object, which no other process can have; export it from a module and name that, as ./agent.ts#agent, or run agents in this process (executor.engineName "local" without workerNum).',
  )
}

/**
 * Identifies an agent, to tell whether two machines have the same one: the files of the project that its module imports, the versions of
 * the packages that these import, the declarations of its agents, and their tools as a model reads them. Throws CONFIG_INVALID for a live
 * object.
 */
export function agentIdentity(agent: Pick<LoadedAgent, 'program' | 'files' | 'directory'>): AgentIdentity {
  requireNamed(agent)
  const parts = moduleParts(agent.files, agent.directory)
  for (const { name, trainable, model, mcpServers, hiddenTools, functions, definitions = [] } of agent.program.agents) {
    parts[`agent "${name}"`] = short({ trainable, model, mcpServers, hiddenTools, functions })
    for (const definition of definitions) parts[`tool "${definition.name}" of agent "${name}"`] = short(definition)
  }
  return { hash: short(parts), parts }
}

const short = (value: object): string => stableHash(value).slice(0, 16)
