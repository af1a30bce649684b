import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { type AgentDeclaration, didYouMean, TrainError } from '@aworld-train/core'
import { findStartingModel, type LocalConfig, PolicyModel, type PolicySettings, type ProblemCollection } from '@aworld-train/training'
import type { PolicyKind, PolicyPlace } from '../policies/policy.ts'
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
    const each = await problems.attempt(() =>
      plan({ name, index, count: several.length, trainable: own.trainable }, own, `policies.${name}`),
    )
    if (each) planned.push(each)
  }
  for (const message of kind.sharesFolders ? [] : sharedFolders(planned)) problems.add(new TrainError('CONFIG_INVALID', message))
  return planned.length === several.length ? (planned as [PlannedPolicy, ...PlannedPolicy[]]) : undefined

  function plan(place: PolicyPlace | null, own: PolicyModel & Partial<PolicySettings>, key: string): PlannedPolicy {
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

function policyProblems({ settings, model, fromScratch }: PolicyChoice, agents: readonly AgentDeclaration[]): string[] {
  const { policies } = settings
  const names = Object.keys(policies)
  const all = Object.values(policies)
  const list = names.map((name) => `"${name}"`).join(', ')
  const isModelSet = JSON.stringify(settings.model) !== JSON.stringify(PolicyModel.parse({}))
  const ofAgents = agents.flatMap((agent) => agentProblems(agent, names, list))
  return [
    ...(isModelSet ? ['model and policies are both set; write what is in model into each of policies, and leave model out.'] : []),
    ...(model === undefined
      ? []
      : [
          `One model is named in place of the configuration's, which has the policies ${list}; name a run or a checkpoint of these policies, or set policies.NAME.path.`,
        ]),
    ...(fromScratch && all.every(({ warmUp }) => warmUp === null)
      ? ['No policy has a warm-up to start from; name one in policies, or leave --from-scratch out.']
      : []),
    ...(all.some(({ trainable }) => trainable) ? [] : ['No policy is trained; set trainable of one in policies to true.']),
    ...names
      .filter((name) => policies[name]!.learningRate !== null && settings.training.learningRate === 0)
      .map((name) => `policies.${name}.learningRate follows the schedule of training.learningRate, which is 0; set that too.`),
    ...ofAgents,
    // An agent that asks for the wrong policy is told so.
    ...(ofAgents.length === 0 && agents.length > 0 ? unusedPolicies(policies, agents) : []),
  ]
}

function unusedPolicies(policies: LocalConfig['policies'], agents: readonly AgentDeclaration[]): string[] {
  return Object.entries(policies).flatMap(([name, policy]) => {
    const users = agents.filter((agent) => (agent.policy ?? agent.model) === name)
    if (users.length === 0) return [`No agent asks for policies.${name}; name it in the llmModelName of one, or leave it out.`]
    if (!policy.trainable || users.some((agent) => agent.trainable && agent.policy === name)) return []
    return [
      `policies.${name} is trained, and no agent that is trained asks for it; set llmProvider of one to "policy", or policies.${name}.trainable to false.`,
    ]
  })
}

function agentProblems({ name, trainable, policy, model, randomKey }: AgentDeclaration, names: readonly string[], list: string): string[] {
  if (policy === undefined) {
    // An agent of ours that is not trained asks a frozen model or an address of its own. One of a program of functions asks the gateway.
    if (!trainable && (model !== undefined || randomKey !== 'prompt')) return []
    const remedy =
      randomKey === 'prompt'
        ? `name its agents with defineAgents, each with one of ${list}, such as defineAgents({ ${name}: { policy: ${JSON.stringify(names[0])} } }, run)`
        : `set llmProvider to "policy" and llmModelName to one of ${list}, without an llmBaseUrl`
    return [`Agent "${name}" asks for no policy; ${remedy}.`]
  }
  if (model !== undefined) return [`Agent "${name}" has the policy "${policy}" and the model "${model}"; leave one out.`]
  if (names.includes(policy)) return []
  return [
    `Agent "${name}" asks for the policy "${policy}", which is not in policies: ${list}.${didYouMean(policy, names)} Correct its name, or add policies.${policy}.`,
  ]
}

/** Two policies of one folder would be one model with two names. */
function sharedFolders(planned: readonly PlannedPolicy[]): string[] {
  const byFolder = Map.groupBy(
    planned.filter(({ model }) => model !== null),
    ({ model }) => realpathSync(model!),
  )
  return [...byFolder].flatMap(([folder, policies]) =>
    policies.length > 1
      ? [
          `policies.${policies.map(({ name }) => name).join(' and policies.')} are the folder ${folder}; let their agents ask for one policy, or copy the folder.`,
        ]
      : [],
  )
}

/** The program of a training with several policies: an agent that asks for one has it as its model, and is trained if the policy is. */
export function withPolicies(program: LocalPlan['program'], policies: LocalPlan['policies']): LocalPlan['program'] {
  if (policies[0].name === null) return program
  const trainable = new Map(policies.map((policy) => [policy.name, policy.trainable]))
  const agents = program.agents.map((agent) =>
    agent.policy === undefined
      ? agent
      : { ...agent, model: agent.policy, trainable: agent.trainable && trainable.get(agent.policy) === true },
  )
  return { ...program, agents }
}
