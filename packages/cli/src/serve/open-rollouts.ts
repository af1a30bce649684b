import { join, resolve } from 'node:path'
import { displayPath, fileBelow, type RunEvent } from '@aworld-train/core'
import type { Gateway } from '@aworld-train/gateway'
import { isLoopback } from '@aworld-train/http'
import { openRunStore } from '@aworld-train/store'
import {
  checkExecutor,
  checkRows,
  createNamedReward,
  isExternal,
  kindOf,
  openRolloutParts,
  openWorkers,
  readListener,
  readToken,
  refuseGroupReward,
  requireDataset,
  rewardOfPath,
  rowsWarning,
  runnerSettings,
  type ServedAgentSide,
  serveAgentSide,
  sharedServersWarning,
  solutionText,
  toChannelTask,
  toLimits,
  watchHealth,
} from '@aworld-train/training'
import { createEnvironment, launcherEngines, loadAgent, openVerifier, workerEntry } from 'aworld-train'
import type { ServedModel } from './open-models.ts'
import type { ServeConfig } from './serve-config.ts'

export interface OpenRolloutsOptions {
  readonly config: ServeConfig
  readonly settings: NonNullable<ServeConfig['rollouts']>
  readonly gateway: Gateway
  readonly models: readonly ServedModel[]
  /** Folder that paths are relative to. */
  readonly directory: string
  /** Folder of the run that keeps finished rollouts. */
  readonly recording: string
  /** Closes everything that is opened. */
  readonly stack: AsyncDisposableStack
}

export interface OpenedRollouts extends Pick<ServedAgentSide, 'service' | 'server'> {
  /** `null` if the configuration has no rollouts. */
  readonly token: string | null
  readonly agents: readonly string[]
  /** The token of workers; `null` if agents run in this process. */
  readonly workerToken: string | null
  /** The run that keeps finished rollouts. */
  readonly path: string
}

/** Loads the agent and serves its rollouts: store, environment, reward, runner, service and its port. */
export async function openRollouts(options: OpenRolloutsOptions): Promise<OpenedRollouts> {
  const { config, settings, gateway, models, directory, recording, stack } = options
  // The model that a trainer samples.
  const channel = models.find((model) => model.channel)?.channel ?? null
  const agent = await loadAgent(settings.agent, directory)
  const { program, directory: agentDirectory } = agent
  if (channel) checkRows(program.agents, channel.settings.rows)
  const frozen = models.flatMap(({ name, route }) => (route.kind === 'frozen' ? [name] : []))
  const { baseDirectory, ...environmentLimits } = config.environment
  const executor = { settings: config.executor, agent, engines: launcherEngines, directory }
  // Workers that somebody else starts may connect with a token that is printed.
  if (!isExternal(config.executor)) await checkExecutor({ ...executor, listeners: { gateway: config.gateway, rollouts: settings } })
  const toolDirectory = baseDirectory === null ? agentDirectory : resolve(directory, baseDirectory)
  const parts = await openRolloutParts(stack, {
    createEnvironment: () => createEnvironment({ baseDirectory: toolDirectory, ...environmentLimits }),
    async createReward() {
      const reward = rewardOfPath(config.reward, directory)
      if (reward) await refuseGroupReward(reward, 'serve scores each rollout by itself')
      return reward && (await createNamedReward(reward, config.reward, frozen, { openVerifier }))
    },
  })
  const dataset = settings.answers === null ? null : await requireDataset(resolve(directory, settings.answers))
  const path = join(recording, 'rollouts')
  const store = stack.adopt(await openRunStore({ path, manifest: { name: 'serve' }, thread: true }), (each) => each.close())
  const engines = models.flatMap(({ name, route }) => (route.kind === 'frozen' ? [] : [[name, route.engine] as const]))
  const agents = program.agents.map(({ name }) => name)
  store.appendEvent({
    type: 'run-start',
    version: 1,
    at: Date.now(),
    run: 'serve',
    path: displayPath(path),
    seed: config.seed,
    resumedFromStep: null,
    details: { policy: engines.map(([name]) => name).join(', '), agent: agents.join(', ') },
  })
  stack.defer(() => store.appendEvent({ type: 'run-end', at: Date.now(), status: 'stopped' }))
  if (store.damage !== null) process.stderr.write(`${store.damage}\n`)
  const token = settings.token === null && isLoopback(settings.host) ? null : readToken(settings.token, 'rollouts.token', directory)
  const folders = settings.taskFiles.map((folder) => resolve(directory, folder))
  const fileOf = (path: string) => fileBelow(resolve(toolDirectory, path), folders)
  const emit = (event: RunEvent) => {
    store.appendEvent(event)
    if (event.type === 'warning-raised') process.stderr.write(`${event.message}\n`)
  }
  const onWarning = ({ code, message }: { readonly code: string; readonly message: string }) =>
    emit({ type: 'warning-raised', at: Date.now(), code, message })
  for (const message of [channel && rowsWarning(program.agents, channel.settings.rows), sharedServersWarning(program)])
    if (message) onWarning({ code: 'CONFIG_WARNING', message })
  const workers = openWorkers(stack, { ...executor, entry: workerEntry, environment: environmentLimits, fileOf, onWarning })
  const { maxQueuedBytes, ...serverLimits } = settings.limits
  const { maxResponseTokens, ...ofTraining } = config.limits
  const limits = { ...toLimits(ofTraining), ...(maxResponseTokens !== null && { maxResponseTokens }) }
  const { service, server, ...side } = await serveAgentSide(stack, {
    ...parts,
    ...runnerSettings({ ...config, concurrency: settings.concurrency }),
    rewardModels: { names: frozen, maxCost: config.reward.maxCost },
    ...(workers && { workers: workers.pool }),
    program,
    baseDirectory: toolDirectory,
    gateway,
    store,
    answers: dataset && { source: settings.answers as string, byTask: dataset.answers },
    retries: settings.retries,
    limits,
    onEvent: (event) => store.appendEvent(event),
    serviceLimits: { maxQueuedBytes },
    taskFiles: { source: 'rollouts.taskFiles', fileOf },
    channel: channel && {
      engine: channel.engine,
      toTask(row, context) {
        const found = toChannelTask(row, context)
        return { ...found, kind: kindOf(found.task, config.evaluation.kindKey) }
      },
      solution: (episode) => solutionText(episode, config.reward.input),
      rows: channel.settings.rows,
      incompleteEpisodes: channel.settings.incompleteEpisodes,
      ownReward: channel.settings.ownReward,
      rolloutTimeoutMs: channel.settings.rolloutTimeoutMs ?? limits.timeoutMs ?? null,
      graceMs: channel.settings.graceMs,
      maxCompletionTokens: channel.settings.maxCompletionTokens,
      onWarning,
    },
    server: {
      ...readListener(settings, directory),
      port: settings.port,
      allowedHosts: [...settings.allowedHosts, ...(settings.publicUrl === null ? [] : [new URL(settings.publicUrl).hostname])],
      ...(token !== null && { token }),
      ...(workers && { workers }),
      limits: serverLimits,
    },
  })
  watchHealth(stack, {
    store,
    sources: { gateway, ...side, engines: Object.fromEntries(engines) },
    emit,
  })
  await workers?.start(settings.publicUrl ?? server.url)
  return { service, server, token, workerToken: workers?.token ?? null, agents, path }
}
