import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Environment } from '@aworld-train/core'
import type { Gateway } from '@aworld-train/gateway'
import { channelPath, type ErrorCode, type RunEvent, TrainError } from '@aworld-train/protocol'
import {
  type ChannelEngine,
  type ChannelServer,
  createChannelEngine,
  type InProcessRolloutRunner,
  type ToTask,
} from '@aworld-train/rollout'
import { keepTokenizer, type OwnedRunStore } from '@aworld-train/store'
import { solutionText, toLimits } from '@aworld-train/training'
import { serveAgentSide } from '../agent-side/agent-side.ts'
import { policyName } from '../agent-side/check-models.ts'
import { countCalls } from '../agent-side/count-calls.ts'
import { openPolicyGateway, routeSettings } from '../agent-side/policy-gateway.ts'
import type { RolloutParts } from '../agent-side/rollout-parts.ts'
import type { PythonTrainingPlan } from './training-plan.ts'

export interface TrainerStageOptions {
  readonly plan: PythonTrainingPlan
  /** A Hugging Face folder, or a name on the Hub, whose files come from the framework. */
  readonly model: string
  readonly isFolder: boolean
  /** They stay open when the stage closes. */
  readonly parts: RolloutParts
  readonly store: OwnedRunStore
  /** The run directory. */
  readonly path: string
  readonly toTask: ToTask
  readonly onEvent: (event: RunEvent) => void
  /** Called when a model call begins or ends. */
  readonly onCalls: (change: 1 | -1) => void
  /** Called when a worker of the framework is rejected for good, such as one whose template renders differently. */
  readonly onRefused: (error: TrainError) => void
}

/**
 * Everything between an agent and a framework in this process: gateway, environment, rollout runner, and the channel that the framework
 * connects to.
 */
export interface TrainerStage {
  readonly engine: ChannelEngine
  readonly gateway: Gateway
  readonly environment: Environment
  readonly runner: InProcessRolloutRunner
  readonly channel: Pick<ChannelServer, 'counts'> | null
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
  const { plan, model, isFolder, parts, store, path, toTask, onEvent, onRefused } = options
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
  const gateway = await openPolicyGateway(stack, {
    policy: { kind: 'token', engine: counted.engine, chat: () => engine.chat(), ...routeSettings(settings) },
    name,
    models: settings.models,
    directory: plan.agent.directory,
    seed: plan.seed,
    calls: settings.gateway,
    agents: plan.program.agents,
    onEvent,
  })
  const token = randomBytes(32).toString('base64url')
  const tokenFile = join(path, 'channel.token')
  await writeFile(tokenFile, token, { mode: 0o600 })
  stack.defer(async () => await rm(tokenFile, { force: true }))
  const { runner, server, channel } = await serveAgentSide(stack, {
    ...parts,
    scoreUnfinished: settings.reward.unfinished,
    program: plan.program,
    baseDirectory: plan.agent.directory,
    gateway,
    store,
    answers: null,
    concurrency: settings.concurrency,
    limits: toLimits({ ...settings.limits, timeoutMs: rolloutTimeoutMs }),
    onEvent,
    channel: {
      engine,
      toTask,
      solution: (episode) => solutionText(episode, settings.reward.input),
      rows: settings.rows,
      incompleteEpisodes: settings.incompleteEpisodes,
      rolloutTimeoutMs,
      graceMs: settings.graceMs,
      maxCompletionTokens: settings.maxCompletionTokens,
      onWarning(warning) {
        warn(warning)
        if (refusals.has(warning.code)) onRefused(new TrainError(warning.code as ErrorCode, warning.message))
      },
    },
    server: { token },
  })
  const owned = stack.move()
  return {
    engine,
    gateway,
    environment: parts.environment,
    runner,
    channel,
    engineCalls: counted.calls,
    address: { url: `${server.url.replace(/^http/, 'ws')}${channelPath}`, tokenFile },
    close: () => owned.disposeAsync(),
  }
}
