import { loadChatModel } from '@aworld-train/chat'
import type { AnswerKey, Environment, RolloutWriter, RunEvent, TokenEngine } from '@aworld-train/core'
import type { Gateway, TokenRoute } from '@aworld-train/gateway'
import type { InProcessRolloutRunner } from '@aworld-train/rollout'
import {
  countCalls,
  openAgentSide,
  openTrainingSide,
  type PolicyGatewayOptions,
  type PromptModel,
  type RolloutParts,
  toLimits,
} from '@aworld-train/training'
import { launcherEngines, workerEntry } from '../launchers.ts'
import { openPolicies } from '../policies/open-policies.ts'
import type { Policy } from '../policies/policy.ts'
import type { LocalPlan } from './plan.ts'

export interface StageOptions {
  /** Hugging Face folders, one for each policy of the plan. */
  readonly models: readonly string[]
  /** The program of an Agent or a Swarm may hold connections; they are closed with the stage. */
  readonly plan: Pick<LocalPlan, 'config' | 'configDirectory' | 'seed' | 'program' | 'agent' | 'policies'>
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

/** Everything between agents and policies: engines, gateway, environment, rollout runner. */
export interface Stage extends Omit<OpenedPolicies, 'routes'> {
  readonly gateway: Gateway
  /** `null` if agents and their tools run in other processes. */
  readonly environment: Environment | null
  readonly runner: InProcessRolloutRunner
  close(): Promise<void>
}

/** The open policies of a plan, with the routes by which a gateway serves them. */
export interface OpenedPolicies {
  readonly policy: Policy
  /** By the names that agents ask for; the first is one that is trained. */
  readonly routes: Readonly<Record<string, TokenRoute>>
  /** The engine of each policy, by the name that agents ask for. */
  readonly engines: Readonly<Record<string, TokenEngine>>
  /** The policy that the program's first agent asks, which gets the prompts of tasks. */
  readonly promptModel: PromptModel
  /** Number of calls that have reached the engines. */
  engineCalls(): number
}

/** Opens the policies of a plan over the folders of their models; `stack` closes them. */
export async function openPolicyRoutes(
  stack: AsyncDisposableStack,
  { policies, program }: Pick<LocalPlan, 'policies' | 'program'>,
  models: readonly string[],
  signal: AbortSignal,
): Promise<OpenedPolicies> {
  const policy = stack.adopt(await openPolicies(policies, models, signal), (each) => each.close())
  const members = policy.members ? [...policy.members.values()] : [policy]
  const opened = await Promise.all(
    members.map(async ({ engine }, index) => {
      const { history, templateArguments, maxPromptBytes } = policies[index]!.settings
      const { stopTokenIds } = engine.model
      const chat = await loadChatModel({ directory: models[index]!, stopTokenIds, history, templateArguments })
      return { chat, maxPromptBytes, counted: countCalls(engine), trainable: policies[index]!.trainable }
    }),
  )
  // What the gateway says of its first policy, such as its weight version, is of one that is trained.
  const trainedFirst = opened.toSorted((a, b) => Number(b.trainable) - Number(a.trainable))
  const entry = opened.find(({ counted: { engine } }) => engine.model.name === program.agents[0]?.model) ?? opened[0]!
  return {
    policy,
    routes: Object.fromEntries(
      trainedFirst.map(({ counted: { engine }, chat, maxPromptBytes }) => [
        engine.model.name,
        { kind: 'token' as const, engine, chat, maxPromptBytes },
      ]),
    ),
    engines: Object.fromEntries(members.map(({ engine }) => [engine.model.name, engine])),
    promptModel: { chat: entry.chat, contextLength: entry.counted.engine.model.contextLength },
    engineCalls: () => opened.reduce((sum, { counted }) => sum + counted.calls(), 0),
  }
}

/** Opens the stage. If a part fails to open, the parts before it are closed. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const { parts, store, answers, onEvent } = options
  const { config, configDirectory, seed, program, agent } = options.plan
  await using stack = new AsyncDisposableStack()
  const { routes, ...opened } = await openPolicyRoutes(stack, options.plan, options.models, options.signal)
  const { gateway, runner, environment } = await openTrainingSide(
    stack,
    {
      ...parts,
      ...options.served,
      policies: routes,
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
  return { ...opened, gateway, environment, runner, close: () => owned.disposeAsync() }
}
