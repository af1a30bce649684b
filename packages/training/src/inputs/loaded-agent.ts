import type { AgentProgram } from '@aworld-train/core'

/** An agent that a training can run. */
export interface LoadedAgent {
  readonly program: AgentProgram
  /** Folder that the agent's relative paths are resolved from. */
  readonly directory: string
  /** How the agent was given, for `agent.yaml` of the run; `null` for a live object. */
  readonly module: string | null
  /** Absolute paths of the files that name it: the module, and the agent.yaml that refers to it. */
  readonly files: readonly string[]
}
