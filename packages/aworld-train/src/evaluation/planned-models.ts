import { readdirSync, statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import { describeModel, displayPath, TrainError } from '@aworld-train/core'
import { createSglangFleet, createSglangTokenEngine, createVllmFleet, createVllmTokenEngine } from '@aworld-train/engines/remote'
import { keepTokenizer } from '@aworld-train/store'
import { countCalls, type FrozenModelSettings, type PlannedModel, type PolicyModel, toFrozenRoutes } from '@aworld-train/training'
import type { LocalPlan } from '../local/plan.ts'
import { policyOfAgent } from '../local/run-report.ts'
import { openPolicyRoutes } from '../local/stage.ts'

export interface PolicyWeights {
  /** A model folder for each policy of the plan. */
  readonly models: readonly string[]
  /** Folder that a learner has saved. Its weights are sampled in place of the models'. */
  readonly checkpoint: string | null
}

/** The files of a model folder with their sizes and times, which tell other weights in the same folder. */
function folderIdentity(folder: string): unknown {
  return [
    folder,
    readdirSync(folder)
      .sort()
      .map((name) => [name, statSync(join(folder, name)).size, statSync(join(folder, name)).mtimeMs]),
  ]
}

/** The policies of a plan: sampled in this process, or by a Tinker service. */
export function plannedPolicies(plan: Pick<LocalPlan, 'policies' | 'program'>, { models, checkpoint }: PolicyWeights): PlannedModel {
  const [first] = plan.policies
  const isAlone = first.name === null
  return {
    identity: [models.map(folderIdentity), checkpoint, plan.policies.map(({ chosen, settings }) => [chosen.settings, settings])],
    hasPrice: true,
    async open(stack, { path, signal }) {
      for (const [index, { name }] of plan.policies.entries()) await keepTokenizer(path, models[index]!, name)
      const { policy, routes, promptModel, engineCalls } = await openPolicyRoutes(stack, plan, models, signal).catch((cause: unknown) => {
        throw withServing(cause, models[0]!)
      })
      if (checkpoint !== null) {
        await policy.learner.load(checkpoint)
        await policy.learner.publish()
      }
      return {
        name: policy.engine.name,
        routes,
        details: { ...policy.details, ...(checkpoint !== null && { checkpoint: displayPath(checkpoint) }) },
        promptModel,
        weights: {
          model: isAlone ? models[0]! : null,
          checkpoint,
          ...(!isAlone && {
            policies: Object.fromEntries(
              plan.policies.map(({ name, trainable }, index) => [
                name!,
                { model: models[index]!, checkpoint: checkpoint !== null && trainable ? join(checkpoint, name!) : null },
              ]),
            ),
          }),
        },
        ...(policy.members && { policyOfAgent: policyOfAgent(plan) }),
        engineCalls,
      }
    },
  }
}

/** The error of a folder that the engine in the box cannot run, with the other way to evaluate it. */
function withServing(cause: unknown, folder: string): unknown {
  if (!(cause instanceof TrainError) || cause.code !== 'CONFIG_INVALID') return cause
  const way = `To evaluate it as it is, serve it, such as by "vllm serve ${displayPath(folder)}", and name its address: --model http://localhost:8000/v1.`
  return new TrainError(cause.code, `${cause.message} ${way}`, { cause, details: cause.details })
}

/**
 * A model behind an address, which is asked under its name in the configuration or by its provider. Files of its answers are relative to
 * `directory`.
 */
export function plannedFrozen(name: string, settings: FrozenModelSettings, directory: string): PlannedModel {
  const { baseUrl, dialect, model, price } = settings
  return {
    // Keys, waits and files of answers do not change what a model says. Without its price, what earlier turns cost is not known.
    identity: { baseUrl, dialect, model, exactModel: settings.exactModel, price },
    hasPrice: price !== null,
    ...(settings.mode === 'record' &&
      settings.cassette?.endsWith(unfinished) && { keepRecording: () => keepRecording(settings.cassette!) }),
    open: async () => ({
      name,
      routes: {
        [name]: {
          ...toFrozenRoutes({ [name]: settings }, resolve(directory))[name]!,
          evaluated: true,
          // A server that is busy for an hour fails no rollout; the person at the terminal sees it and may stop the run.
          patienceMs: Number.POSITIVE_INFINITY,
        },
      },
      details: { model: `${model} at ${new URL(baseUrl).host}` },
      promptModel: null,
      weights: { model: `${baseUrl}#${model}`, checkpoint: null },
      engineCalls: () => 0,
    }),
  }
}

/** End of the name of a recording until every rollout has its result, so that an evaluation that goes on records on. */
export const unfinished = '.unfinished'

async function keepRecording(path: string): Promise<void> {
  await rename(path, path.slice(0, -unfinished.length))
}

/** A model of vLLM or SGLang whose tokens are recorded: the gateway renders its prompts and sends token ids. */
export interface ServedTokens {
  /** The name that the server has for it. */
  readonly name: string
  readonly server: 'vllm' | 'sglang'
  readonly baseUrl: string
  /** Folder with its tokenizer, template and config.json. */
  readonly folder: string
  readonly apiKey: string | undefined
}

/** A model of a server of one's own, sampled by token ids. */
export function plannedTokens({ name, server, baseUrl, folder, apiKey }: ServedTokens, settings: PolicyModel): PlannedModel {
  const { history, templateArguments, maxPromptBytes } = settings
  return {
    identity: { baseUrl, name, folder: folderIdentity(folder), history, templateArguments, maxPromptBytes },
    hasPrice: true,
    async open(stack, { path }) {
      await keepTokenizer(path, folder)
      const model = await describeModel({ name, directory: folder, contextLength: null })
      const options = { replicas: [baseUrl.replace(/\/v1$/, '')], ...(apiKey !== undefined && { apiKey }) }
      const fleet = stack.adopt(await (server === 'vllm' ? createVllmFleet(options) : createSglangFleet(options)), (each) => each.close())
      const create = server === 'vllm' ? createVllmTokenEngine : createSglangTokenEngine
      const { engine, calls } = countCalls(await create({ fleet, served: name, model }))
      const chat = await loadChatModel({ directory: folder, stopTokenIds: model.stopTokenIds, history, templateArguments })
      return {
        name,
        routes: { [name]: { kind: 'token', engine, chat, maxPromptBytes } },
        details: { model: `${name} at ${new URL(baseUrl).host}, ${server}, by token ids` },
        promptModel: { chat, contextLength: model.contextLength },
        weights: { model: `${baseUrl}#${name}`, checkpoint: null },
        engineCalls: calls,
      }
    },
  }
}

/** What `--model` says for agents that ask addresses of their own. */
export const noModelName = 'none'

/** No model of ours: agents ask addresses of their own, and what they ask is not seen. */
export const noModel: PlannedModel = {
  identity: null,
  hasPrice: false,
  open: async () => ({
    name: noModelName,
    // A call of it fails with this address in its message; names below .invalid never resolve (RFC 6761).
    routes: {
      [noModelName]: {
        kind: 'frozen',
        baseUrl: 'http://no-model-is-named.invalid',
        dialect: 'chat-completions',
        model: noModelName,
        evaluated: true,
        retries: 0,
      },
    },
    details: { model: "the agent's own" },
    promptModel: null,
    weights: { model: null, checkpoint: null },
    engineCalls: () => 0,
  }),
}
