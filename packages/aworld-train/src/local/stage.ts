import { type ChatModel, loadChatModel } from '@aworld-train/chat'
import type { AnswerKey, Environment, RolloutWriter, RunEvent } from '@aworld-train/core'
import type { Gateway } from '@aworld-train/gateway'
import type { InProcessRolloutRunner } from '@aworld-train/rollout'
import { countCalls, openAgentSide, openTrainingSide, type PolicyGatewayOptions, type RolloutParts, toLimits } from '@aworld-train/training'
import { launcherEngines, workerEntry } from '../launchers.ts'
import type { Policy } from '../policies/policy.ts'
import type { LocalPlan } from './plan.ts'

export interface StageOptions {
  /** A Hugging Face folder. */
  readonly model: string
  /** The program of an Agent or a Swarm may hold connections; they are closed with the stage. */
  readonly plan: Pick<LocalPlan, 'config' | 'configDirectory' | 'seed' | 'program' | 'agent' | 'policy'>
  /** Runs agents in this process, whatever the configuration says. Default `false`. */
  readonly inProcess?: boolean | undefined
  /** They stay open when the stage closes. */
  readonly parts: RolloutParts
  readonly store: RolloutWriter
  readonly answers: ReadonlyMap<string, AnswerKey>
  readonly onEvent: (event: RunEvent) => void
  /** The signal of the run. It ends waits for a policy at a service. */
  readonly signal: AbortSignal
  /** The port of the gateway and the metrics that it shows beside its own. Default: any free port, and none. */
  readonly served?: Pick<PolicyGatewayOptions, 'port' | 'registry'> | undefined
}

/** Everything between an agent and the policy: engine, gateway, environment, rollout runner. */
export interface Stage {
  readonly policy: Policy
  readonly chat: ChatModel
  /** Context length of the policy, in tokens. */
  readonly contextLength: number
  readonly gateway: Gateway
  /** `null` if agents and their tools run in other processes. */
  readonly environment: Environment | null
  readonly runner: InProcessRolloutRunner
  /** Number of calls that have reached the engine. */
  engineCalls(): number
  close(): Promise<void>
}

/** Opens the stage. If a part fails to open, the parts before it are closed. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const { parts, store, answers, onEvent } = options
  const { config, configDirectory, seed, program, agent } = options.plan
  await using stack = new AsyncDisposableStack()
  const policy = stack.adopt(await options.plan.policy.open(options.model, options.signal), (each) => each.close())
  const chat = await loadChatModel({
    directory: options.model,
    stopTokenIds: policy.engine.model.stopTokenIds,
    history: config.model.history,
    templateArguments: config.model.templateArguments,
  })
  const counted = countCalls(policy.engine)
  const { gateway, runner, environment } = await openTrainingSide(
    stack,
    {
      ...parts,
      ...options.served,
      policy: { engine: counted.engine, chat },
      name: policy.engine.model.name,
      settings: config,
      configDirectory,
      agentDirectory: agent.directory,
      // One rollout of a test, without workers, needs no address for others.
      elsewhere: options.inProcess ? null : { agent, engines: launcherEngines, entry: workerEntry },
      seed,
      program,
      store,
      answers: { source: 'the dataset', byTask: answers },
      limits: toLimits(config.limits),
      onEvent,
    },
    (side) => ({ runner: openAgentSide(stack, side) }),
  )
  const owned = stack.move()
  return {
    policy,
    chat,
    contextLength: policy.engine.model.contextLength,
    gateway,
    environment,
    runner,
    engineCalls: counted.calls,
    close: () => owned.disposeAsync(),
  }
}
