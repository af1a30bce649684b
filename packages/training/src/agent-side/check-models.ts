import { basename } from 'node:path'
import { type AgentDeclaration, didYouMean, TrainError } from '@aworld-train/core'

/** The name that the gateway gives the policy of a model folder; a warm-up makes a folder `model`. */
export const policyName = (folder: string | null) => basename(folder ?? 'model')

/** Names of the policy and of the frozen models of a configuration. */
export interface GatewayModels {
  readonly frozen: readonly string[]
  readonly policy: string
}

/** Throws CONFIG_INVALID with every problem: a frozen model that has the name of the policy, and agents whose model nobody serves. */
export function checkModels(agents: readonly AgentDeclaration[], { frozen, policy }: GatewayModels): void {
  const problems = frozen.includes(policy)
    ? [`models.${policy} has the name of the policy, which is that of its folder; give the frozen model another name.`]
    : []
  const models = [...new Set([...frozen, policy])]
  for (const { name, model } of agents) {
    if (model === undefined || models.includes(model)) continue
    const list =
      frozen.length > 0 ? `the frozen models are ${frozen.map((each) => `"${each}"`).join(', ')}` : 'there is no frozen model in "models"'
    problems.push(
      `Agent "${name}" asks for the gateway's model "${model}", which nobody serves: ${list}, and the policy is "${policy}".${didYouMean(model, models)} Correct llmModelName, or add models.${model} to the configuration.`,
    )
  }
  if (problems.length > 0) throw new TrainError('CONFIG_INVALID', problems.join('\n'), { details: { known: models } })
}
