import { join, resolve } from 'node:path'
import { displayPath, fileBelow } from '@aworld-train/core'
import type { Gateway } from '@aworld-train/gateway'
import { isLoopback } from '@aworld-train/http'
import { registerWorkerMetrics } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import {
  checkExecutor,
  concurrencyOf,
  createReward,
  isExternal,
  isInProcess,
  kindOf,
  openRolloutParts,
  openWorkerPool,
  readSecret,
  readTls,
  requireDataset,
  type ServedAgentSide,
  serveAgentSide,
  solutionText,
  startWorkers,
  toChannelTask,
  toLimits,
  watchHealth,
} from '@aworld-train/training'
import { createEnvironment, launcherEngines, loadAgent, workerEntry } from 'aworld-train'
import type { ServedModel } from './open-models.ts'
import { randomToken } from './random-token.ts'
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
  /** Whether workers are waited for or were started; `null` if agents run in this process. */
  readonly workers: 'external' | 'started' | null
  readonly workerToken: string
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
  const { baseDirectory, ...environmentLimits } = config.environment
  const { path: rewardPath, name: rewardName, input: rewardInput, unfinished, ...rewardLimits } = config.reward
  const { executor } = config
  const inProcess = isInProcess(executor)
  const executorParts = { settings: executor, agent, engines: launcherEngines, directory }
  const startsWorkers = !inProcess && !isExternal(executor)
  if (startsWorkers) await checkExecutor({ ...executorParts, listeners: { gateway: config.gateway, rollouts: settings } })
  const toolDirectory = baseDirectory === null ? agentDirectory : resolve(directory, baseDirectory)
  const parts = await openRolloutParts(stack, {
    createEnvironment: () => createEnvironment({ baseDirectory: toolDirectory, ...environmentLimits }),
    async createReward() {
      if (rewardPath === null) return null
      const source = rewardName === null ? rewardPath : `${rewardPath}#${rewardName}`
      return await createReward(source, { baseDirectory: directory, rewardInput, ...rewardLimits })
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
  const token =
    settings.token === null ? (isLoopback(settings.host) ? null : randomToken()) : readSecret(settings.token, 'rollouts.token', directory)
  // Workers that are started here get it in their environment.
  const workerToken = executor.token === null ? randomToken() : readSecret(executor.token, 'executor.token', directory)
  const folders = settings.taskFiles.map((folder) => resolve(directory, folder))
  const fileOf = (path: string) => fileBelow(resolve(toolDirectory, path), folders)
  const warnOf = ({ message }: { readonly message: string }) => void process.stderr.write(`${message}\n`)
  const pool = openWorkerPool(stack, { settings: executor, agent, environment: environmentLimits, fileOf, onWarning: warnOf })
  const { maxQueuedBytes, ...serverLimits } = settings.limits
  const { maxResponseTokens, ...ofTraining } = config.limits
  const limits = { ...toLimits(ofTraining), ...(maxResponseTokens !== null && { maxResponseTokens }) }
  const { service, server, ...side } = await serveAgentSide(stack, {
    ...parts,
    scoreUnfinished: unfinished,
    program,
    baseDirectory: toolDirectory,
    gateway,
    store,
    answers: dataset && { source: settings.answers as string, byTask: dataset.answers },
    concurrency: concurrencyOf(executor, settings.concurrency),
    maxLosses: executor.maxLosses,
    ...(pool && { workers: pool }),
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
      solution: (episode) => solutionText(episode, rewardInput),
      rows: channel.settings.rows,
      incompleteEpisodes: channel.settings.incompleteEpisodes,
      rolloutTimeoutMs: channel.settings.rolloutTimeoutMs ?? limits.timeoutMs ?? null,
      graceMs: channel.settings.graceMs,
      maxCompletionTokens: channel.settings.maxCompletionTokens,
      onWarning: warnOf,
    },
    server: {
      host: settings.host,
      port: settings.port,
      tls: readTls(settings.tls, directory),
      insecure: settings.insecure,
      allowedHosts: [...settings.allowedHosts, ...(settings.publicUrl === null ? [] : [new URL(settings.publicUrl).hostname])],
      ...(token !== null && { token }),
      ...(pool && { workers: { pool, token: workerToken } }),
      limits: serverLimits,
    },
  })
  if (pool) registerWorkerMetrics(gateway.registry, () => side.runner.workers.rows())
  watchHealth(stack, {
    store,
    sources: { gateway, ...side, engines: Object.fromEntries(engines) },
    emit(event) {
      store.appendEvent(event)
      if (event.type === 'warning-raised') warnOf(event)
    },
  })
  if (pool && startsWorkers)
    await startWorkers(
      stack,
      { ...executorParts, entry: workerEntry, onWarning: warnOf },
      { url: settings.publicUrl ?? server.url, token: workerToken },
      pool,
    )
  const workers = inProcess ? null : isExternal(executor) ? 'external' : 'started'
  return { service, server, token, workerToken, agents, path, workers }
}
