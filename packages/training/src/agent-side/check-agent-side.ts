import type { LauncherEngine } from '@aworld-train/core'
import type { LocalConfig } from '../config/local-config.ts'
import { checkExecutor } from '../executor/check-executor.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import type { ProblemCollection } from '../preflight/collect-problems.ts'
import { checkModels } from './check-models.ts'
import { checkRecordings } from './frozen-routes.ts'
import { sharedServersWarning } from './shared-servers.ts'

export interface AgentSideCheck {
  readonly agent: LoadedAgent
  readonly settings: Pick<LocalConfig, 'models' | 'executor' | 'gateway'>
  /** Sections of the configuration that could not be read. What depends on them is not checked. */
  readonly failed: ReadonlySet<string>
  /** Names of the policies; absent if they are not known. */
  readonly policies: readonly string[] | undefined
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
  /** Engines beside `local` that start workers. */
  readonly engines: readonly LauncherEngine[]
}

/** Adds every problem that would keep an agent from its models or from the processes that are to run it. Resolves to warnings. */
export async function checkAgentSide(
  { attempt }: Pick<ProblemCollection, 'attempt'>,
  { agent, settings: { models, executor, gateway }, failed, policies, directory, engines }: AgentSideCheck,
): Promise<string[]> {
  if (!failed.has('models')) {
    if (policies !== undefined) await attempt(() => checkModels(agent.program.agents, { frozen: Object.keys(models), policies }))
    await attempt(() => checkRecordings(models, agent.directory))
  }
  if (!failed.has('executor') && !failed.has('gateway'))
    await attempt(() => checkExecutor({ settings: executor, agent, engines, directory, listeners: { gateway } }))
  const warning = sharedServersWarning(agent.program)
  return warning === null ? [] : [warning]
}
