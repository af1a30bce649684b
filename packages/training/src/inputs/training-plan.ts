import type { AgentProgram, Environment } from '@aworld-train/core'
import type { LocalConfig } from '../config/local-config.ts'
import type { LoadedDataset } from '../dataset/dataset-types.ts'
import type { RunOptions } from '../run-options.ts'
import type { LoadedAgent } from './loaded-agent.ts'

/** The result of the checks, as far as it is the same for every trainer. Nothing is written at this point. */
export interface TrainingPlan {
  readonly name: string
  readonly seed: number
  /** The program of `agent`, which may hold connections. */
  readonly program: AgentProgram & { close?(): Promise<void> }
  readonly agent: LoadedAgent
  readonly train: LoadedDataset
  readonly test: LoadedDataset | null
  readonly createEnvironment: () => Environment
  /** The starting model; `null` if the warm-up makes it. */
  readonly model: string | null
  readonly warmUp: string | null
}

/** The name of a training: that of the caller, of the configuration, or of the agent that is trained. */
export const trainingName = (
  { name }: Pick<RunOptions, 'name'>,
  { experimentName }: Pick<LocalConfig, 'experimentName'>,
  { agents }: Pick<AgentProgram, 'agents'>,
): string => name ?? experimentName ?? agents.find(({ trainable }) => trainable)?.name ?? 'agent'
