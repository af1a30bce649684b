import type { AgentProgram, Environment, EvaluationReport, Reward, Sampling } from '@aworld-train/core'
import type { ModelRoute } from '@aworld-train/gateway'
import type { SideSettings } from '../agent-side/training-side.ts'
import { callSettingsOf } from '../config/call-settings.ts'
import type { LocalConfig } from '../config/local-config.ts'
import type { LoadedDataset } from '../dataset/dataset-types.ts'
import type { Launchers } from '../executor/open-executor.ts'
import { agentIdentity } from '../inputs/agent-hash.ts'
import { datasetHash, exportHash, hashesByName } from '../inputs/input-hashes.ts'
import type { LoadedAgent } from '../inputs/loaded-agent.ts'
import type { PromptModel } from '../inputs/long-prompts.ts'
import type { NamedReward } from '../inputs/named-reward.ts'

/** A model that is evaluated, open. */
export interface OpenEvaluatedModel {
  /** The name that rollouts have as their policy. */
  readonly name: string
  /** The models that agents ask, by name; empty for agents with addresses of their own. */
  readonly routes: Readonly<Record<string, ModelRoute>>
  /** Lines for people. */
  readonly details: Readonly<Record<string, string>>
  /** Renders the prompts of tasks; `null` if the server does. */
  readonly promptModel: PromptModel | null
  /** What the report says of the weights. */
  readonly weights: Pick<EvaluationReport, 'model' | 'checkpoint' | 'policies'>
  readonly policyOfAgent?: Readonly<Record<string, string>> | undefined
  /** Number of calls that have reached an engine of this process. */
  engineCalls(): number
}

/** A model that is evaluated, before it is open. */
export interface PlannedModel {
  /** Identifies it among evaluations: the bytes or the address, and its settings. */
  readonly identity: unknown
  /** Whether what its calls cost is known. A model of this machine costs nothing. */
  readonly hasPrice: boolean
  /** Makes a recording of its answers one that is replayed. Called when every rollout has its result, and nothing is open any more. */
  readonly keepRecording?: (() => Promise<void>) | undefined
  /** `path` is the folder of the run, which keeps the tokenizers of models that have one. `stack` closes it. */
  open(stack: AsyncDisposableStack, run: { readonly path: string; readonly signal: AbortSignal }): Promise<OpenEvaluatedModel>
}

/** An agent, tasks and a model, and what is asked of them. Nothing is written at this point. */
export interface EvaluationPlan {
  readonly name: string
  readonly seed: number
  readonly agent: LoadedAgent
  /** The program of `agent`, as it asks the model that is evaluated. */
  readonly program: AgentProgram & { close?(): Promise<void> }
  readonly dataset: LoadedDataset
  readonly samplesPerTask: number
  readonly sampling: Sampling
  readonly settings: SideSettings & Pick<LocalConfig, 'limits' | 'evaluation' | 'executor' | 'gateway'>
  readonly configDirectory: string
  readonly model: PlannedModel
  /** `null` collects answers without scoring them. */
  readonly reward: NamedReward | null
  readonly createEnvironment: () => Environment
  readonly createReward: () => Promise<Reward | null>
  /** What starts workers for the agent; `null` runs it in this process. */
  readonly launchers: Launchers | null
  /** US dollars that the run may cost; `null` sets no limit. */
  readonly budget: number | null
  readonly notes: readonly string[]
  readonly warnings: readonly string[]
  /** What the command said, kept so that it can be repeated; `null` for a live agent, dataset or reward. */
  readonly command: Readonly<Record<string, unknown>> | null
}

/** Hashes of what an evaluation's result depends on, by names for people. Evaluations of equal hashes are the same command. */
export function evaluationInputs(plan: EvaluationPlan): Record<string, string> {
  const { agent, program, dataset, reward, settings, sampling, samplesPerTask, seed, model, name } = plan
  const { models, limits, environment, toolAnswers, agent: agentSettings, reward: rewardSettings } = settings
  const { input, unfinished } = rewardSettings
  return hashesByName({
    'the name': name,
    'the model': model.identity,
    'the agent': agent.files.length > 0 ? agentIdentity(agent).hash : program.agents.map((each) => each.name),
    'the tasks': datasetHash(dataset),
    'the reward': [reward && rewardIdentity(reward), input, unfinished],
    'the samples of each task': samplesPerTask,
    'the sampling': [sampling, seed],
    'the limits': limits,
    'the settings': [
      Object.entries(models).map(([key, { baseUrl, dialect, model: served, headers }]) => [key, baseUrl, dialect, served, headers]),
      environment,
      toolAnswers,
      agentSettings,
      callSettingsOf(settings.gateway),
    ],
  })
}

/** The bytes of a reward's file and the name of its export, wherever the file lies, or the text of a function. */
function rewardIdentity({ source, directory }: NamedReward): unknown {
  if (typeof source === 'string') return [exportHash(source, directory), /#(.*)$/s.exec(source)?.[1] ?? null]
  return typeof source === 'function' ? String(source) : [source.name, String(source.score)]
}
