import { basename } from 'node:path'
import { type AgentDeclaration, didYouMean, TrainError } from '@aworld-train/core'

/** The name that the gateway gives the policy of a model folder; a warm-up makes a folder `model`. */
export const policyName = (folder: string | null) => basename(folder ?? 'model')

/** Names of the policies and of the frozen models of a configuration. */
export interface GatewayModels {
  readonly frozen: readonly string[]
  readonly policies: readonly string[]
}

/** Throws CONFIG_INVALID with every problem: frozen models that have the name of a policy, and agents whose model nobody serves. */
export function checkModels(agents: readonly AgentDeclaration[], { frozen, policies }: GatewayModels): void {
  const problems = policies
    .filter((policy) => frozen.includes(policy))
    .map(
      (policy) =>
        `models.${policy} has the name of a policy${policies.length === 1 ? ', which is that of its folder' : ''}; give the frozen model another name.`,
    )
  const models = [...new Set([...frozen, ...policies])]
  for (const { name, model } of agents) {
    if (model === undefined || models.includes(model)) continue
    const list =
      frozen.length > 0 ? `the frozen models are ${frozen.map((each) => `"${each}"`).join(', ')}` : 'there is no frozen model in "models"'
    problems.push(
      `Agent "${name}" asks for the gateway's model "${model}", which nobody serves: ${list}, and the ${policies.length === 1 ? 'policy is' : 'policies are'} ${policies.map((each) => `"${each}"`).join(', ')}.${didYouMean(model, models)} Correct llmModelName, or add models.${model} to the configuration.`,
    )
  }
  if (problems.length > 0) throw new TrainError('CONFIG_INVALID', problems.join('\n'), { details: { known: models } })
}
