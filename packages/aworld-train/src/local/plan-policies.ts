import { resolve } from 'node:path'
import { type AgentDeclaration, didYouMean, TrainError } from '@aworld-train/core'
import { findStartingModel, type LocalConfig, PolicyModel, type PolicySettings, type ProblemCollection } from '@aworld-train/training'
import type { PolicyKind } from '../policies/policy.ts'
import type { LocalPlan, PlannedPolicy } from './plan.ts'

export interface PolicyChoice {
  readonly settings: LocalConfig
  readonly kind: PolicyKind
  /** The section of the kind. */
  readonly extension: Readonly<Record<string, unknown>>
  /** Folder that paths of the configuration are relative to. */
  readonly directory: string
  /** A model in place of the configuration's. */
  readonly model: string | undefined
  readonly fromScratch: boolean | undefined
  readonly agents: readonly AgentDeclaration[] | undefined
}

/** Finds the starting model of each policy and chooses what runs it. Adds every problem; `undefined` if there are some. */
export async function planPolicies(problems: ProblemCollection, choice: PolicyChoice): Promise<LocalPlan['policies'] | undefined> {
  const { settings, kind, extension, directory, model, fromScratch, agents } = choice
  const several = Object.entries(settings.policies)
  const [first] = several
  if (!first) {
    const single = { ...settings.model, path: model === undefined ? settings.model.path : resolve(model) }
    const planned = await problems.attempt(() => plan(null, single, 'model'))
    return planned && [planned]
  }
  const found = policyProblems(choice, agents ?? [])
  for (const message of found) problems.add(new TrainError('CONFIG_INVALID', message))
  const planned: PlannedPolicy[] = []
  for (const [index, [name, own]] of several.entries()) {
    const each = await problems.attempt(() => plan({ name, index, count: several.length }, own, `policies.${name}`))
    if (each) planned.push(each)
  }
  for (const message of sharedFolders(planned)) problems.add(new TrainError('CONFIG_INVALID', message))
  return planned.length === several.length ? (planned as [PlannedPolicy, ...PlannedPolicy[]]) : undefined

  function plan(
    place: Parameters<PolicyKind['choose']>[3] | null,
    own: PolicyModel & Partial<PolicySettings>,
    key: string,
  ): PlannedPolicy {
    const start = findStartingModel({
      model: own.path,
      key: `${key}.path`,
      directory,
      warmUp: own.warmUp,
      fromScratch: fromScratch && (place === null || own.warmUp !== null),
      takesHubNames: false,
    })
    const { learningRate } = settings.training
    return {
      ...start,
      name: place?.name ?? null,
      settings: own,
      trainable: own.trainable ?? true,
      rateFactor: own.learningRate == null || learningRate === 0 ? 1 : own.learningRate / learningRate,
      chosen: kind.choose(settings, extension, start.model, place ?? undefined),
    }
  }
}

function policyProblems({ settings, model }: PolicyChoice, agents: readonly AgentDeclaration[]): string[] {
  const { policies } = settings
  const names = Object.keys(policies)
  const list = names.map((name) => `"${name}"`).join(', ')
  const isModelSet = JSON.stringify(settings.model) !== JSON.stringify(PolicyModel.parse({}))
  const users = agents.filter(({ trainable, policy, model: frozen }) => (trainable ? policy : frozen) !== undefined)
  return [
    ...(isModelSet ? ['model and policies are both set; write what is in model into each of policies, and leave model out.'] : []),
    ...(model === undefined
      ? []
      : [`One model is named in place of the configuration's, which has the policies ${list}; name theirs in policies.`]),
    ...(Object.values(policies).some(({ trainable }) => trainable)
      ? []
      : ['No policy is trained; set trainable of one in policies to true.']),
    ...names
      .filter((name) => policies[name]!.learningRate !== null && settings.training.learningRate === 0)
      .map((name) => `policies.${name}.learningRate follows the schedule of training.learningRate, which is 0; set that too.`),
    ...agents.flatMap(({ name, trainable, policy }) => {
      if (!trainable) return []
      if (policy === undefined)
        return [`Agent "${name}" names no policy; set llmProvider to "policy" and llmModelName to one of ${list}, without an llmBaseUrl.`]
      if (names.includes(policy)) return []
      return [
        `Agent "${name}" asks for the policy "${policy}", which is not in policies: ${list}.${didYouMean(policy, names)} Correct llmModelName, or add policies.${policy}.`,
      ]
    }),
    ...names
      .filter((name) => agents.length > 0 && !users.some((agent) => (agent.trainable ? agent.policy : agent.model) === name))
      .map((name) => `No agent asks for policies.${name}; name it in the llmModelName of one, or leave it out.`),
  ]
}

/** Two policies of one folder would be one model with two names. */
function sharedFolders(planned: readonly PlannedPolicy[]): string[] {
  const byFolder = Map.groupBy(
    planned.filter(({ model }) => model !== null),
    ({ model }) => model,
  )
  return [...byFolder].flatMap(([folder, policies]) =>
    policies.length > 1
      ? [
          `policies.${policies.map(({ name }) => name).join(' and policies.')} are the folder ${folder}; agents that share a model ask for one policy.`,
        ]
      : [],
  )
}

/** The program of a training with several policies: an agent that asks for one has it as its model, and is trained if the policy is. */
export function withPolicies(program: LocalPlan['program'], policies: LocalPlan['policies']): LocalPlan['program'] {
  if (policies[0].name === null) return program
  const trainable = new Map(policies.map((policy) => [policy.name, policy.trainable]))
  const agents = program.agents.map((agent) =>
    agent.trainable && agent.policy !== undefined
      ? { ...agent, model: agent.policy, trainable: trainable.get(agent.policy) ?? false }
      : agent,
  )
  return { ...program, agents }
}
