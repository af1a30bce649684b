import { join, resolve } from 'node:path'
import { createEnvironment } from '@aworld-train/environment'
import type { Gateway } from '@aworld-train/gateway'
import { isLoopback } from '@aworld-train/http'
import { type AnswerKey, TrainError } from '@aworld-train/protocol'
import {
  createChannelAnswers,
  createChannelServer,
  createRolloutRunner,
  createRolloutServer,
  createRolloutService,
  type RolloutServer,
  type RolloutService,
} from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { createReward, requireDataset, solutionText, toChannelTask } from '@aworld-train/training'
import { loadAgent } from 'aworld-train'
import type { OpenedChannel } from './open-models.ts'
import { randomToken } from './random-token.ts'
import { readSecret } from './read-serve-config.ts'
import { readTls } from './read-tls.ts'
import type { ServeConfig } from './serve-config.ts'

export interface OpenRolloutsOptions {
  readonly config: ServeConfig
  readonly settings: NonNullable<ServeConfig['rollouts']>
  readonly gateway: Gateway
  /** The model that a trainer samples; `null` where there is none. */
  readonly channel: OpenedChannel | null
  /** Folder that paths are relative to. */
  readonly directory: string
  /** Folder of the run that keeps what is finished. */
  readonly recording: string
  /** Closes what is opened. */
  readonly stack: AsyncDisposableStack
}

export interface OpenedRollouts {
  readonly service: RolloutService
  readonly server: RolloutServer
  /** `null` where none is asked for. */
  readonly token: string | null
  readonly agents: readonly string[]
}

/** Loads the agent and serves rollouts of it: store, environment, reward, runner, service and its port. */
export async function openRollouts(options: OpenRolloutsOptions): Promise<OpenedRollouts> {
  const { config, settings, gateway, channel: opened, directory, recording, stack } = options
  const agent = await loadAgent(settings.agent, directory)
  stack.defer(async () => await (agent.program as { close?(): Promise<void> }).close?.())
  const { baseDirectory, ...environmentLimits } = config.environment
  const environment = stack.adopt(
    createEnvironment({
      baseDirectory: baseDirectory === null ? agent.directory : resolve(directory, baseDirectory),
      ...environmentLimits,
    }),
    (each) => each.close(),
  )
  const { input: rewardInput, ...rewardLimits } = settings.rewardSettings
  const reward =
    settings.reward === null
      ? null
      : stack.adopt(await createReward(settings.reward, { baseDirectory: directory, rewardInput, ...rewardLimits }), (each) => each.close())
  const answers = settings.answers === null ? null : (await requireDataset(resolve(directory, settings.answers))).answers
  const store = stack.adopt(await openRunStore({ path: join(recording, 'rollouts'), manifest: { name: 'serve' }, thread: true }), (each) =>
    each.close(),
  )
  if (store.damage !== null) process.stderr.write(`${store.damage}\n`)
  const rowAnswers = createChannelAnswers()
  const answerKey = (taskId: string): AnswerKey => {
    const own = rowAnswers.answerKey(taskId)
    return own.groundTruth === null ? (answers?.get(taskId) ?? own) : own
  }
  const service = stack.adopt(
    createRolloutService({
      store,
      check: ({ task }) => {
        if (reward === null || answers === null || answers.has(task.id) || rowAnswers.has(task.id)) return
        const message = `Task "${task.id}" is not in ${settings.answers}, so its reward would know no answer; add the task there, or submit one of its ${answers.size} tasks.`
        throw new TrainError('ROLLOUT_INVALID', message)
      },
      limits: { maxQueuedBytes: settings.limits.maxQueuedBytes },
      openRunner: (onEvent) =>
        createRolloutRunner({
          program: agent.program,
          gateway,
          environment,
          reward,
          store,
          answerKey,
          concurrency: settings.concurrency,
          retries: settings.retries,
          limits: settings.budget,
          onEvent(event) {
            store.appendEvent(event)
            onEvent(event)
          },
        }),
    }),
    (each) => each.close(),
  )
  const channel =
    opened === null
      ? null
      : stack.adopt(
          createChannelServer({
            service,
            engine: opened.engine,
            store,
            answers: rowAnswers,
            toTask: toChannelTask,
            solution: (episode) => solutionText(episode, rewardInput),
            rows: opened.settings.rows,
            incompleteEpisodes: opened.settings.incompleteEpisodes,
            reward: reward === null ? 'native' : 'service',
            rolloutTimeoutMs: opened.settings.rolloutTimeoutMs ?? settings.budget.timeoutMs ?? null,
            graceMs: opened.settings.graceMs,
            ...(opened.settings.maxCompletionTokens !== null && { maxCompletionTokens: opened.settings.maxCompletionTokens }),
            onWarning: ({ message }) => void process.stderr.write(`${message}\n`),
          }),
          (each) => each.close(),
        )
  const token =
    settings.token === null ? (isLoopback(settings.host) ? null : randomToken()) : readSecret(settings.token, 'rollouts.token', directory)
  const { maxQueuedBytes: _, ...limits } = settings.limits
  const server = stack.adopt(
    await createRolloutServer({
      service,
      host: settings.host,
      port: settings.port,
      tls: readTls(settings.tls, directory),
      insecure: settings.insecure,
      allowedHosts: settings.allowedHosts,
      ...(token !== null && { token }),
      ...(channel && { channel }),
      limits,
    }),
    (each) => each.close(),
  )
  return { service, server, token, agents: agent.program.agents.map(({ name }) => name) }
}
