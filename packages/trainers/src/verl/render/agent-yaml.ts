import type { PlanInputs } from '@aworld-train/core'
import { isTree } from '@aworld-train/training'
import { parse, stringify } from 'yaml'
import { verlAgentLoopTarget } from '../python/bridge-names.ts'

/** Text of `agent.yaml` for verl's agent loop registry (verl/experimental/agent_loop, 0.9.1): the bridge, with the module that runs in Node. */
export function renderAgentYaml({ agent, name, path }: PlanInputs): string {
  const moduleEntry = sourceEntry(agent)
  const { name: _, _target_: __, ...rest } = moduleEntry
  const entry = {
    name: agent.name,
    _target_: verlAgentLoopTarget,
    ...(agent.module === null ? {} : { module: agent.module }),
    run: name,
    run_path: path,
    ...rest,
  }
  const source = agent.source === null ? '' : ' from agent.source.yaml'
  const live = agent.module === null ? '# The agent was given as an object and runs in the process that started the run.\n' : ''
  return `# Rendered${source} by AWorld Train: verl hands rollouts to the bridge, which runs the agent in Node.\n${live}${stringify([entry])}`
}

/** The entry of the user's agent.yaml for this agent: the one of its name, or the only one. */
function sourceEntry({ source, name }: PlanInputs['agent']): Readonly<Record<string, unknown>> {
  if (source === null) return {}
  const parsed: unknown = parse(source)
  const entries = (Array.isArray(parsed) ? parsed : [parsed]).filter(isTree)
  return entries.find((entry) => entry['name'] === name) ?? (entries.length === 1 ? entries[0]! : {})
}
