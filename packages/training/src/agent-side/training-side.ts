import type { Environment } from '@aworld-train/core'
import type { Gateway, TokenRoute } from '@aworld-train/gateway'
import { type InProcessRolloutRunner, registerWorkerMetrics } from '@aworld-train/rollout'
import type { LocalConfig } from '../config/local-config.ts'
import { concurrencyOf } from '../executor/find-launcher.ts'
import { type Launchers, openExecutor } from '../executor/open-executor.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import type { AgentSideOptions } from './agent-side.ts'
import { type Listener, openPolicyGateway, type PolicyGatewayOptions, routeSettings } from './policy-gateway.ts'
import { readTls } from './read-tls.ts'
import type { RolloutParts } from './rollout-parts.ts'

/** The settings for everything between a policy and its agents. */
export type SideSettings = Pick<
  LocalConfig,
  'model' | 'models' | 'toolAnswers' | 'agent' | 'gateway' | 'executor' | 'reward' | 'concurrency'
>

export interface TrainingSideOptions
  extends RolloutParts,
    Pick<AgentSideOptions, 'program' | 'store' | 'answers' | 'limits' | 'onEvent'>,
    Pick<PolicyGatewayOptions, 'name' | 'seed' | 'port' | 'registry'> {
  readonly policy: Pick<TokenRoute, 'engine' | 'chat'>
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
  const { settings, policy, name, seed, port, registry, configDirectory, agentDirectory, elsewhere, onWorkersFailed } = options
  const { program, environment, reward, store, answers, limits, onEvent } = options
  const { executor, concurrency } = settings
  const listener = elsewhere ? readListener(settings.gateway, configDirectory) : undefined
  const gateway = await openPolicyGateway(stack, {
    policy: { kind: 'token', ...policy, ...routeSettings(settings) },
    name,
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
      settings: executor,
      directory: configDirectory,
      listener,
      onWarning: ({ code, message }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message }),
      onFailed: onWorkersFailed,
    }))
  const opened = await openRunner({
    environment,
    reward,
    scoreUnfinished: settings.reward.unfinished,
    ...(workers && { workers }),
    program,
    baseDirectory: agentDirectory,
    gateway,
    store,
    answers,
    concurrency: concurrencyOf(executor, concurrency),
    maxLosses: executor.maxLosses,
    limits,
    onEvent,
  })
  if (workers) registerWorkerMetrics(gateway.registry, () => opened.runner.workers.rows())
  return { ...opened, gateway, environment: workers ? null : environment }
}

/** Settings of the gateway's listener. Its files are found relative to `directory`. */
const readListener = ({ host, tls, insecure, publicUrl }: LocalConfig['gateway'], directory: string): Listener => ({
  host,
  tls: readTls(tls, directory),
  insecure,
  ...(publicUrl !== null && { publicUrl }),
})
