import { type ChatModel, loadChatModel } from '@aworld-train/chat'
import type { Environment, Reward, RunStore } from '@aworld-train/core'
import { createLocalEngine, type LocalEngine } from '@aworld-train/engine-local'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway, type Gateway } from '@aworld-train/gateway'
import type { AnswerKey, RolloutLimits, RunEvent } from '@aworld-train/protocol'
import { createRolloutRunner, type InProcessRolloutRunner } from '@aworld-train/rollout'
import type { LocalConfig } from '@aworld-train/training'
import { checkModels } from './check-models.ts'
import { toFrozenRoutes } from './frozen-routes.ts'
import type { LocalPlan } from './plan.ts'

export interface StageOptions {
  /** A Hugging Face folder. */
  readonly model: string
  /** Its configuration, seed and program; a program that holds connections, of an Agent or a Swarm, ends them with the stage. */
  readonly plan: Pick<LocalPlan, 'config' | 'seed' | 'program' | 'agentDirectory'>
  readonly reward: Reward | null
  readonly store: RunStore
  readonly answers: ReadonlyMap<string, AnswerKey>
  readonly onEvent: (event: RunEvent) => void
}

/** Everything between an agent and the policy in the box, in one process: engine, gateway, environment, executor. */
export interface Stage {
  readonly local: LocalEngine
  readonly chat: ChatModel
  readonly gateway: Gateway
  readonly environment: Environment
  readonly runner: InProcessRolloutRunner
  /** The starting weights, which stay as they are; only where the configuration asks for a KL term. */
  readonly reference: Pick<LocalEngine['learner'], 'logprobs'> | undefined
  /** Calls that reached the engine. */
  engineCalls(): number
  close(): Promise<void>
}

/** Opens the stage; what was opened is closed again when a later part fails. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const { reward, store, answers, onEvent } = options
  const { config, seed, program, agentDirectory } = options.plan
  await using stack = new AsyncDisposableStack()
  const local = stack.adopt(
    await createLocalEngine({
      model: options.model,
      simd: config.engine.simd,
      maxRows: config.concurrency,
      ...(config.engine.threads === null ? {} : { threads: config.engine.threads }),
    }),
    (each) => each.close(),
  )
  const reference =
    config.training.klCoefficient === 0
      ? undefined
      : stack.adopt(await createLocalEngine({ model: options.model, simd: config.engine.simd, threads: 1, maxRows: 1 }), (each) =>
          each.close(),
        )
  const chat = await loadChatModel({
    directory: options.model,
    stopTokenIds: local.engine.model.stopTokenIds,
    history: config.model.history,
    templateArguments: config.model.templateArguments,
  })
  let engineCalls = 0
  const counted: typeof local.engine = {
    name: local.engine.name,
    model: local.engine.model,
    generate(request, signal) {
      engineCalls += 1
      return local.engine.generate(request, signal)
    },
    weightVersion: () => local.engine.weightVersion(),
    sampledTokens: () => local.engine.sampledTokens(),
    close: () => local.engine.close(),
  }
  const { name } = counted.model
  const frozen = toFrozenRoutes(config.models, agentDirectory)
  checkModels(program.agents, { frozen: Object.keys(frozen), policy: name })
  const gateway = stack.adopt(
    await createGateway({
      models: { ...frozen, [name]: { kind: 'token', engine: counted, chat } },
      defaultModel: name,
      // An agent of any framework asks for the model that it was written for; where there are others to ask for, a name is meant.
      aliases: Object.keys(frozen).length === 0 ? { '*': name } : {},
      seed,
      onWarning: ({ code, message }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message }),
    }),
    (each) => each.close(),
  )
  const environment = stack.adopt(createEnvironment({ baseDirectory: agentDirectory }), (each) => each.close())
  stack.defer(async () => await program.close?.())
  const runner = stack.adopt(
    createRolloutRunner({
      program,
      gateway,
      environment,
      reward,
      store,
      answerKey: (taskId) => answers.get(taskId) ?? { version: 1, taskId, groundTruth: null },
      concurrency: config.concurrency,
      limits: toRolloutLimits(config.limits),
      onEvent,
    }),
    (each) => each.close(),
  )
  const owned = stack.move()
  return {
    local,
    reference: reference?.learner,
    chat,
    gateway,
    environment,
    runner,
    engineCalls: () => engineCalls,
    close: () => owned.disposeAsync(),
  }
}

function toRolloutLimits(limits: LocalConfig['limits']): RolloutLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null)) as RolloutLimits
}
