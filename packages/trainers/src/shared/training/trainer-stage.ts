import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { channelPath, type ErrorCode, type RunEvent, TrainError } from '@aworld-train/core'
import { type ChannelEngine, createChannelEngine, type ToTask } from '@aworld-train/rollout'
import { keepTokenizer, type OwnedRunStore } from '@aworld-train/store'
import {
  countCalls,
  openTrainingSide,
  policyName,
  type RolloutParts,
  randomToken,
  type ServedAgentSide,
  serveAgentSide,
  solutionText,
  type TrainingSide,
  toLimits,
} from '@aworld-train/training'
import type { Registry } from 'prom-client'
import type { PythonTrainingPlan } from './training-plan.ts'

export interface TrainerStageOptions {
  readonly plan: PythonTrainingPlan
  /** A Hugging Face folder, or a name on the Hub, whose files come from the framework. */
  readonly model: string
  readonly isFolder: boolean
  /** They stay open when the stage closes. */
  readonly parts: RolloutParts
  readonly store: OwnedRunStore
  /** Metrics that the gateway shows beside its own. */
  readonly registry: Registry
  /** The run directory. */
  readonly path: string
  readonly toTask: ToTask
  readonly onEvent: (event: RunEvent) => void
  /** Called when a model call begins or ends. */
  readonly onCalls: (change: 1 | -1) => void
  /**
   * Called if no later action can repair the run: a worker of the framework is rejected for good, such as one whose template renders
   * differently, or no process can be had for the agent.
   */
  readonly onFailed: (error: Error) => void
}

/**
 * Everything between an agent and a framework in this process: gateway, environment, rollout runner, and the channel that the framework
 * connects to.
 */
export interface TrainerStage extends TrainingSide, Pick<ServedAgentSide, 'runner' | 'channel'> {
  readonly engine: ChannelEngine
  /** Number of calls that have reached the engine. */
  engineCalls(): number
  /** The address that the framework's processes connect to, and the file with their token. */
  readonly address: { readonly url: string; readonly tokenFile: string }
  close(): Promise<void>
}

/** Errors that no later action of a framework can repair. */
const refusals: ReadonlySet<string> = new Set(['TEMPLATE_MISMATCH', 'TEMPLATE_UNSUPPORTED', 'MODEL_MISMATCH', 'CHANNEL_PROTOCOL'])

/** Opens the stage on loopback behind a random token. If a part fails to open, the parts before it are closed. */
export async function openTrainerStage(options: TrainerStageOptions): Promise<TrainerStage> {
  const { plan, model, isFolder, parts, store, registry, path, toTask, onEvent, onFailed } = options
  const { settings } = plan.config
  const warn = ({ code, message }: { code: string; message: string }) => onEvent({ type: 'warning-raised', at: Date.now(), code, message })
  await using stack = new AsyncDisposableStack()
  const name = policyName(model)
  const engine = stack.adopt(
    createChannelEngine({
      name,
      directory: isFolder ? model : null,
      filesDirectory: join(path, 'tokenizer'),
      history: settings.model.history,
      onWarning: warn,
      onModel: (directory) => keepTokenizer(path, directory),
    }),
    (each) => each.close(),
  )
  const counted = countCalls(engine, options.onCalls)
  const rolloutTimeoutMs = settings.limits.timeoutMs ?? settings.rolloutTimeoutMs
  const token = randomToken()
  const tokenFile = join(path, 'channel.token')
  await writeFile(tokenFile, token, { mode: 0o600 })
  stack.defer(async () => await rm(tokenFile, { force: true }))
  const { gateway, environment, runner, server, channel } = await openTrainingSide(
    stack,
    {
      ...parts,
      policies: {
        [name]: { kind: 'token', engine: counted.engine, chat: () => engine.chat(), maxPromptBytes: settings.model.maxPromptBytes },
      },
      settings,
      port: settings.gateway.port,
      registry,
      configDirectory: plan.config.directory,
      agentDirectory: plan.agent.directory,
      elsewhere: { ...plan.launchers, agent: plan.agent },
      seed: plan.seed,
      program: plan.program,
      store,
      answers: null,
      limits: toLimits({ ...settings.limits, timeoutMs: rolloutTimeoutMs }),
      onEvent,
      onWorkersFailed: onFailed,
    },
    (side) =>
      serveAgentSide(stack, {
        ...side,
        store,
        channel: {
          engine,
          toTask,
          solution: (episode) => solutionText(episode, settings.reward.input),
          rows: settings.rows,
          incompleteEpisodes: settings.incompleteEpisodes,
          ownReward: settings.ownReward,
          rolloutTimeoutMs,
          graceMs: settings.graceMs,
          maxCompletionTokens: settings.maxCompletionTokens,
          onWarning(warning) {
            warn(warning)
            if (refusals.has(warning.code)) onFailed(new TrainError(warning.code as ErrorCode, warning.message))
          },
        },
        server: { token },
      }),
  )
  const owned = stack.move()
  return {
    engine,
    gateway,
    environment,
    runner,
    channel,
    engineCalls: counted.calls,
    address: { url: `${server.url.replace(/^http/, 'ws')}${channelPath}`, tokenFile },
    close: () => owned.disposeAsync(),
  }
}
