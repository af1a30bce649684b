import type { AgentProgram, RunEvent } from '@aworld-train/core'
import { createGateway, type Gateway, type ModelRoute, type TokenRoute } from '@aworld-train/gateway'
import type { Registry } from 'prom-client'
import { type CallSettings, callSettingsOf } from '../config/call-settings.ts'
import type { FrozenModelSettings } from '../config/frozen-model.ts'
import type { LocalConfig } from '../config/local-config.ts'
import { checkModels } from './check-models.ts'
import { toFrozenRoutes } from './frozen-routes.ts'
import type { Listener } from './read-listener.ts'

export interface PolicyGatewayOptions {
  /** The policies by the names that agents know them by. The first is the one of agents that name none. */
  readonly policies: Readonly<Record<string, ModelRoute>>
  /** Models that are not trained; their relative files are found in `directory`. */
  readonly models: Readonly<Record<string, FrozenModelSettings>>
  readonly directory: string
  readonly seed: number
  /** Treatment of the calls of agents. */
  readonly calls: CallSettings
  readonly agents: AgentProgram['agents']
  readonly onEvent: (event: RunEvent) => void
  /** Default: any free port. */
  readonly port?: number | undefined
  /** Default: loopback. */
  readonly listener?: Listener | undefined
  /** Metrics that the gateway shows beside its own. */
  readonly registry?: Registry | undefined
}

/** The settings of a configuration for the answers of tools and policies. */
export const routeSettings = ({
  toolAnswers,
  agent: { malformedCalls },
}: Pick<LocalConfig, 'toolAnswers' | 'agent'>): Pick<TokenRoute, 'toolAnswers' | 'malformedCalls'> => ({
  toolAnswers,
  malformedCalls,
})

/** Opens the gateway of the policies that are trained or evaluated, and of the models that are not; `stack` closes it. Throws CONFIG_INVALID for models that nobody serves. */
export async function openPolicyGateway(stack: AsyncDisposableStack, options: PolicyGatewayOptions): Promise<Gateway> {
  const { policies, models, directory, seed, calls, agents, onEvent, port, listener, registry } = options
  const names = Object.keys(policies)
  // A model of the configuration that is evaluated is a policy, and rewards may ask it too.
  const frozen = Object.fromEntries(Object.entries(toFrozenRoutes(models, directory)).filter(([name]) => !isEvaluated(policies[name])))
  checkModels(agents, { frozen: Object.keys(frozen), policies: names })
  return stack.adopt(
    await createGateway({
      models: { ...frozen, ...policies },
      defaultModel: names[0],
      // An agent of any framework asks for the model that it was written for; that name stands for the policy. With several models, names
      // must be right.
      aliases: Object.keys(frozen).length === 0 && names.length === 1 ? { '*': names[0]! } : {},
      seed,
      ...callSettingsOf(calls),
      ...listener,
      port,
      registry,
      onWarning: ({ code, message }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message }),
    }),
    (each) => each.close(),
  )
}

const isEvaluated = (route: ModelRoute | undefined) => route?.kind === 'frozen' && route.evaluated === true
