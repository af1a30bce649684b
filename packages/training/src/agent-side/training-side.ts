import type { Environment } from '@aworld-train/core'
import type { Gateway, ModelRoute } from '@aworld-train/gateway'
import type { InProcessRolloutRunner } from '@aworld-train/rollout'
import type { LocalConfig } from '../config/local-config.ts'
import { type Launchers, openExecutor } from '../executor/open-executor.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import { type AgentSideOptions, runnerSettings } from './agent-side.ts'
import { openPolicyGateway, type PolicyGatewayOptions, routeSettings } from './policy-gateway.ts'
import { readListener } from './read-listener.ts'
import type { RolloutParts } from './rollout-parts.ts'

/** The settings for everything between a policy and its agents. */
export type SideSettings = Pick<
  LocalConfig,
  'models' | 'environment' | 'toolAnswers' | 'agent' | 'gateway' | 'executor' | 'reward' | 'concurrency'
>

export interface TrainingSideOptions
  extends RolloutParts,
    Pick<AgentSideOptions, 'program' | 'store' | 'answers' | 'limits' | 'onEvent'>,
    Pick<PolicyGatewayOptions, 'seed' | 'port' | 'registry'> {
  /** By the names that agents ask for. */
  readonly policies: Readonly<Record<string, ModelRoute>>
  readonly settings: SideSettings
  /** Folder that paths of the configuration are relative to. */
  readonly configDirectory: string
  /** Folder that paths of the agent are relative to. */
  readonly agentDirectory: string
  /**
   * The agent as other processes find it, and what starts workers for it. `null` runs agents in this process and keeps the gateway on
   * loopback, whatever the configuration says.
   */
  readonly elsewhere: (Launchers & { readonly agent: LoadedAgent }) | null
  /** Called if no worker can be had, with the reason. */
  readonly onWorkersFailed?: ((error: Error) => void) | undefined
}

export interface TrainingSide {
  readonly gateway: Gateway
  /** `null` if agents and their tools run in other processes. */
  readonly environment: Environment | null
}

/**
 * Opens everything that a training has between its policy and its agents: the gateway, the workers if agents run in other processes, and by
 * `openRunner` the runner of rollouts. `stack` closes it.
 */
export async function openTrainingSide<Runner extends { readonly runner: InProcessRolloutRunner }>(
  stack: AsyncDisposableStack,
  options: TrainingSideOptions,
  openRunner: (side: AgentSideOptions) => Runner | Promise<Runner>,
): Promise<Runner & TrainingSide> {
  const { settings, policies, seed, port, registry, configDirectory, agentDirectory, elsewhere, onWorkersFailed } = options
  const { program, environment, reward, store, answers, limits, onEvent } = options
  const listener = elsewhere ? readListener(settings.gateway, configDirectory) : undefined
  const gateway = await openPolicyGateway(stack, {
    policies: Object.fromEntries(
      Object.entries(policies).map(([name, route]) => [name, route.kind === 'token' ? { ...route, ...routeSettings(settings) } : route]),
    ),
    models: settings.models,
    directory: agentDirectory,
    seed,
    calls: settings.gateway,
    agents: program.agents,
    onEvent,
    port,
    listener,
    registry,
  })
  const workers =
    elsewhere &&
    (await openExecutor(stack, {
      ...elsewhere,
      settings: settings.executor,
      environment: settings.environment,
      directory: configDirectory,
      listener,
      onWarning: ({ code, message }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message }),
      onFailed: onWorkersFailed,
    }))
  const opened = await openRunner({
    environment,
    reward,
    ...runnerSettings(settings),
    rewardModels: { names: Object.keys(settings.models), maxCost: settings.reward.maxCost },
    seed,
    ...(workers && { workers }),
    program,
    baseDirectory: agentDirectory,
    gateway,
    store,
    answers,
    limits,
    onEvent,
  })
  return { ...opened, gateway, environment: workers ? null : environment }
}
