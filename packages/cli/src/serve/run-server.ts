import { dirname, join, resolve } from 'node:path'
import { channelPath, defaultAttemptMs, errorMessage, type FixedAddress, type PolicySession, TrainError } from '@aworld-train/core'
import { openDashboard } from '@aworld-train/dashboard'
import { createGateway, type Gateway } from '@aworld-train/gateway'
import { callSettingsOf, isExternal, readListener, readToken, workerCommand } from '@aworld-train/training'
import { openTurnLog, type TurnLog } from '../commands/turn-log.ts'
import { openModels, type ServedModel } from './open-models.ts'
import { type OpenedRollouts, openRollouts } from './open-rollouts.ts'
import { ownRecording } from './own-recording.ts'
import { limitRows, toTable } from './print-table.ts'
import { readClientKey, readServeConfig } from './read-serve-config.ts'
import type { ServeConfig } from './serve-config.ts'

export interface RunServerOptions {
  /** Path of the configuration. */
  readonly file: string
  /** Shows the recorded rollouts in a browser on this machine. Default `false`. */
  readonly dashboard?: boolean | { readonly port: number }
  /** Aborts to stop the server. */
  readonly signal: AbortSignal
  readonly write: (text: string) => void
}

/** Hosts that mean all addresses. They do not tell the name by which others reach this machine. */
const allAddresses: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

interface Running {
  readonly config: ServeConfig
  readonly models: readonly ServedModel[]
  readonly gateway: Gateway
  readonly adminToken: string
  readonly clients: PolicySession | null
  readonly rollouts: OpenedRollouts | null
  /** Address of the dashboard, or the reason why there is none; `null` if none was wanted. */
  readonly watch: string | null
}

const publishers = (models: readonly ServedModel[]) =>
  Object.fromEntries(models.flatMap(({ name, publish }) => (publish ? [[name, publish] as const] : [])))

async function openGateway(
  config: ServeConfig,
  models: readonly ServedModel[],
  directory: string,
  adminToken: string,
  turns: TurnLog | null,
) {
  const { port, allowedHosts, limits } = config.gateway
  const { maxSessions, maxKeptBytes, ...http } = limits
  return await createGateway({
    models: Object.fromEntries(models.map(({ name, route }) => [name, route])),
    ...(config.defaultModel !== null && { defaultModel: config.defaultModel }),
    aliases: config.aliases,
    seed: config.seed,
    ...callSettingsOf(config.gateway),
    ...readListener(config.gateway, directory),
    port,
    allowedHosts,
    limits: http,
    admin: {
      token: adminToken,
      maxSessions,
      maxKeptBytes,
      weights: publishers(models),
      ...(turns && { onTurn: ({ turn, ...session }) => turns.append(turn, session) }),
    },
    logger: { warn: (message) => process.stderr.write(`${message}\n`) },
  })
}

/** The address of plain clients that is the same at every start; `null` if none is configured. */
function readAddress({ clients }: ServeConfig, adminToken: string, directory: string): FixedAddress | null {
  if (!clients || clients.key === null) return null
  const key = readClientKey(clients.key, 'clients.key', directory)
  if (key !== adminToken) return { path: clients.path ?? '', key }
  throw new TrainError('CONFIG_INVALID', 'clients.key is the admin token; take another, or every client of the model may open sessions.')
}

function openClients(
  { clients, sampling, defaultModel }: ServeConfig,
  models: readonly ServedModel[],
  gateway: Gateway,
  turns: TurnLog | null,
  address: FixedAddress | null,
) {
  if (clients === null) return null
  const { maxCallsInFlight, maxKeptTurns } = clients
  const home = models.find(({ name }) => name === (defaultModel ?? models[0]!.name))!
  // A trainer client samples only for the rollouts that it has submitted.
  if (home.channel) return null
  return gateway.open({
    rollout: 'clients',
    attempt: 0,
    taskId: 'clients',
    sample: 0,
    policy: home.name,
    sampling,
    agents: [{ name: 'client', trainable: home.route.kind !== 'frozen' }],
    maxCallsInFlight,
    maxKeptTurns,
    ...(address && { address }),
    ...(turns && { onTurn: (_, turn) => turns.append(turn, { rollout: 'clients', attempt: 0, agent: turn.agent }) }),
  })
}

function describe({ config, models, gateway, adminToken, clients, rollouts, watch }: Running): string {
  const rows: (readonly [string, string])[] = models.map(({ name, description }, index) => [
    index === 0 ? 'models' : '',
    `${name}: ${description}`,
  ])
  const key = config.clients?.key ? 'the configured key' : 'any API key'
  if (clients) rows.push(['baseURL', `${clients.endpoint('client').baseUrl}  (${key})`])
  rows.push(['gateway', `${gateway.url}  /health /ready /metrics, POST /v1/sessions`])
  if (models.some(({ publish }) => publish)) rows.push(['weights', 'POST /v1/models/NAME/weights, with the admin token'])
  const { host, publicUrl } = config.gateway
  if (publicUrl === null && allAddresses.has(host))
    rows.push(['', 'agents on other machines need a URL with a name: set gateway.publicUrl'])
  rows.push(['admin', config.gateway.adminToken === null ? adminToken : 'the configured token'])
  if (rollouts) {
    const { server, token, workerToken, agents } = rollouts
    rows.push(['rollouts', `${server.url}/v1/rollouts  agents: ${agents.join(', ')}`])
    if (models.some(({ channel }) => channel)) rows.push(['channel', `${server.url.replace(/^http/, 'ws')}${channelPath}`])
    const { executor } = config
    const { publicUrl, agent } = config.rollouts!
    if (workerToken !== null && isExternal(executor)) {
      const { command, variable } = workerCommand(executor, { url: publicUrl ?? server.url, agent })
      rows.push(['workers', command], ['', `${variable} is ${executor.token === null ? workerToken : 'the configured token of workers'}`])
    } else if (workerToken !== null)
      rows.push(['workers', `${executor.workerNum ?? 1} x ${executor.slots} slots, started by ${executor.cls ?? executor.engineName}`])
    rows.push([
      'token',
      token === null ? 'none is asked for on loopback' : config.rollouts?.token === null ? token : 'the configured token',
    ])
  }
  if (watch !== null) rows.push(['watch', watch])
  rows.push(['recording', config.recording ?? 'nothing is kept'])
  const limits = [toTable(limitRows(config.gateway.limits), '  ')]
  const timeoutMs = config.limits.timeoutMs ?? defaultAttemptMs
  const rolloutLimits = config.rollouts && { concurrency: config.rollouts.concurrency, timeoutMs, ...config.rollouts.limits }
  const clientLimits = config.clients && { maxCallsInFlight: config.clients.maxCallsInFlight, maxKeptTurns: config.clients.maxKeptTurns }
  if (clientLimits) limits.push(`limits of clients\n${toTable(limitRows(clientLimits), '  ')}`)
  if (rolloutLimits) limits.push(`limits of rollouts\n${toTable(limitRows(rolloutLimits), '  ')}`)
  for (const [name, model] of Object.entries(config.models)) {
    const modelLimits = { ...('maxPromptBytes' in model && { maxPromptBytes: model.maxPromptBytes }), ...('urls' in model && model.limits) }
    if (Object.keys(modelLimits).length > 0) limits.push(`limits of ${name}\n${toTable(limitRows(modelLimits), '  ')}`)
  }
  return `${toTable(rows)}limits of the gateway\n${limits.join('')}Ctrl-C ends\n`
}

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

/** Describes calls and rollouts under way. */
function underWay({ gateway, rollouts }: Running): { readonly open: boolean; readonly text: string } {
  const calls = gateway.counts().inFlight
  const { running, queued } = rollouts?.service.counts() ?? { running: 0, queued: 0 }
  const parts = [plural(calls, 'call')]
  if (rollouts) parts.push(`${plural(running, 'rollout')} running`, `${queued} queued`)
  return { open: calls + running + queued > 0, text: parts.join(', ') }
}

/** Waits for calls and rollouts under way, and reports those that it waits for and those that it had to cut off. */
async function drain(running: Running, write: (text: string) => void): Promise<void> {
  const { gateway, rollouts, config } = running
  const before = underWay(running)
  const time = AbortSignal.timeout(config.drainMs)
  if (before.open) write(`under way: ${before.text}; waiting at most ${config.drainMs / 1_000} s\n`)
  await Promise.all([rollouts?.service.drain(time), gateway.drain(time)])
  const after = underWay(running)
  write(after.open ? `cut off: ${after.text}\n` : 'nothing was under way any more\n')
}

/** Opens the dashboard. If it cannot be served, everything else is served all the same. */
async function openWatch(stack: AsyncDisposableStack, path: string, dashboard: true | { readonly port: number }): Promise<string> {
  try {
    const { url } = stack.adopt(await openDashboard({ runs: [path], ...(dashboard !== true && dashboard) }), (each) => each.close())
    return url
  } catch (error) {
    return `not served: ${errorMessage(error)}`
  }
}

/** Serves the models and rollouts of a configuration until `stop` aborts; resolves when everything is closed. */
export async function runServer({ file, dashboard = false, signal, write }: RunServerOptions): Promise<void> {
  const config = readServeConfig(file)
  const directory = dirname(resolve(file))
  await using stack = new AsyncDisposableStack()
  const recording = config.recording === null ? null : resolve(directory, config.recording)
  if (recording !== null) stack.adopt(await ownRecording(recording), (each) => each.release())
  const turns = recording === null ? null : stack.adopt(await openTurnLog(join(recording, 'turns.jsonl')), (each) => each.close())
  const adminToken = readToken(config.gateway.adminToken, 'gateway.adminToken', directory)
  const address = readAddress(config, adminToken, directory)
  const models = await openModels({ config, directory, recording, stack })
  const gateway = stack.adopt(await openGateway(config, models, directory, adminToken, turns), (each) => each.close())
  const clients = openClients(config, models, gateway, turns, address)
  const rollouts =
    config.rollouts === null || recording === null
      ? null
      : await openRollouts({
          config,
          settings: config.rollouts,
          gateway,
          models,
          directory,
          recording,
          stack,
        })
  const watch = dashboard && rollouts ? await openWatch(stack, rollouts.path, dashboard) : null
  const running: Running = { config, models, gateway, adminToken, clients, rollouts, watch }
  write(describe(running))
  if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  await drain(running, write)
}
