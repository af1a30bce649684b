import type { AgentProgram, RolloutWriter } from '@aworld-train/core'
import { createGateway, type Gateway, type TokenRoute } from '@aworld-train/gateway'
import type { AnswerKey, RolloutLimits, RunEvent } from '@aworld-train/protocol'
import { createRolloutRunner, type InProcessRolloutRunner } from '@aworld-train/rollout'
import type { FrozenModelSettings } from '@aworld-train/training'
import { checkModels } from '../local/check-models.ts'
import { toFrozenRoutes } from '../local/frozen-routes.ts'
import type { RolloutParts } from './rollout-parts.ts'

export interface AgentSideOptions extends RolloutParts {
  /** The policy, and the name that agents know it by. */
  readonly policy: TokenRoute
  readonly name: string
  /** Models that are not trained. */
  readonly models: Readonly<Record<string, FrozenModelSettings>>
  readonly seed: number
  /** One that holds connections, of an Agent or a Swarm, ends them with the parts. */
  readonly program: AgentProgram & { close?(): Promise<void> }
  /** Folder that its relative paths are relative to. */
  readonly agentDirectory: string
  readonly store: RolloutWriter
  readonly answerKey: (taskId: string) => AnswerKey
  readonly concurrency: number
  /** `null` is no limit. */
  readonly limits: Readonly<Record<string, number | null>>
  readonly onEvent: (event: RunEvent) => void
}

/** What stands between an agent and a policy, whoever samples for it. */
export interface AgentSide {
  readonly gateway: Gateway
  /** Opens the one executor; it tells `onEvent` in addition. Whoever opens it closes it. */
  openRunner(onEvent?: (event: RunEvent) => void): InProcessRolloutRunner
}

/** Opens the gateway, which `stack` closes. CONFIG_INVALID for models that nobody serves. */
export async function openAgentSide(stack: AsyncDisposableStack, options: AgentSideOptions): Promise<AgentSide> {
  const { policy, name, models, seed, program, agentDirectory, onEvent } = options
  const frozen = toFrozenRoutes(models, agentDirectory)
  checkModels(program.agents, { frozen: Object.keys(frozen), policy: name })
  const gateway = stack.adopt(
    await createGateway({
      models: { ...frozen, [name]: policy },
      defaultModel: name,
      // An agent of any framework asks for the model that it was written for; where there are others to ask for, a name is meant.
      aliases: Object.keys(frozen).length === 0 ? { '*': name } : {},
      seed,
      onWarning: ({ code, message }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message }),
    }),
    (each) => each.close(),
  )
  stack.defer(async () => await program.close?.())
  const { environment, reward, store, answerKey, concurrency, limits } = options
  return {
    gateway,
    openRunner: (tell) =>
      createRolloutRunner({
        program,
        gateway,
        environment,
        reward,
        store,
        answerKey,
        concurrency,
        limits: Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null)) as RolloutLimits,
        onEvent: (event) => {
          onEvent(event)
          tell?.(event)
        },
      }),
  }
}
