import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createEncoder } from '@aworld-train/chat'
import { type PolicySession, type SessionRequest, TrainError } from '@aworld-train/core'
import { openHttpServer } from '@aworld-train/http'
import { Registry } from 'prom-client'
import { affinityOf } from './affinity.ts'
import { createCallKinds } from './call-kind.ts'
import { createCapabilities } from './capability.ts'
import { createCounters, toGatewayCounts } from './counters.ts'
import { createFixedAddresses } from './fixed-addresses.ts'
import { openFrozenClients } from './frozen/frozen-client.ts'
import { createModelNames } from './frozen/model-names.ts'
import { createGate } from './gate.ts'
import { createHistoryWatch } from './history-watch.ts'
import { createHostedTools } from './hosted-tools.ts'
import { createAdminApi } from './http/admin-api.ts'
import { createRequestHandler, type Grant, type HttpParts } from './http/handle-request.ts'
import { notReady } from './http/state-routes.ts'
import { createModelTable, type ModelTable } from './models/model-table.ts'
import { registerGatewayMetrics } from './observe/gateway-metrics.ts'
import { createObserver } from './observe/observer.ts'
import { defaultLimits, type Gateway, type GatewayOptions, type GatewayWarning } from './options.ts'
import { createPacer } from './pacer.ts'
import { createRecorder } from './pass-through/recorder.ts'
import { createPauses } from './pauses.ts'
import type { GatewayParts } from './served-call.ts'
import { createSession } from './session.ts'
import { createSessionState, type SessionState } from './session-state.ts'

/** Compiles the expressions of `ignore`. Throws CONFIG_INVALID for an invalid one, and if a model renders its own prompts. */
function ignoredText(ignore: readonly string[], { all }: ModelTable): RegExp[] {
  const own = ignore.length > 0 ? all.find(({ kind }) => kind === 'chat') : undefined
  if (own) {
    const message = `gateway.ignore is set, but the server of model "${own.name}" renders its own prompts and sees what changes; leave it out, or serve the model as a token engine.`
    throw new TrainError('CONFIG_INVALID', message)
  }
  try {
    return ignore.map((text) => new RegExp(text, 'gm'))
  } catch (cause) {
    throw new TrainError('CONFIG_INVALID', `gateway.ignore holds no regular expression: ${(cause as Error).message}.`, { cause })
  }
}

/**
 * Starts a recording gateway in front of `models`. Rejects with GATEWAY_PORT_IN_USE, or with CONFIG_INVALID for a name that is no model.
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { seed, host = '127.0.0.1', port = 0, tls, insecure, admin, publicUrl, allowedHosts = [], logger } = options
  const warn = options.onWarning ?? (({ message, code, details }: GatewayWarning) => logger?.warn(message, { code, ...details }))
  const limits = { ...defaultLimits, ...options.limits }
  const gate = createGate()
  const pauses = createPauses(gate, options.maxPauseMs ?? Number.POSITIVE_INFINITY, (message) =>
    warn({ code: 'PAUSE_OVERRUN', message, details: {} }),
  )
  const counters = createCounters()
  const metrics = options.registry ?? new Registry()
  const observer = createObserver(metrics)
  const models = createModelTable(options)
  const ignore = ignoredText(options.ignore ?? [], models)
  const recorder = createRecorder()
  const frozen = await openFrozenClients(
    models.all.filter((model) => model.kind === 'frozen'),
    warn,
  )
  const encoder = createEncoder()
  const parts: GatewayParts = {
    models,
    seed,
    gate,
    counters,
    observer,
    limits,
    logger,
    history: createHistoryWatch(warn),
    ignore,
    callKind: createCallKinds(options.trainedCalls ?? 'with-tools'),
    hosted: createHostedTools(options.hostedTools ?? 'leave-out', counters, warn),
    encoder,
    pacer: createPacer(),
    recorder,
    frozen,
    modelNames: createModelNames(warn),
  }
  const capabilities = createCapabilities<Grant>()
  const addresses = createFixedAddresses<Grant>()
  const sessions = new Map<string, { readonly session: PolicySession; readonly state: SessionState }>()

  const eventLoop = monitorEventLoopDelay({ resolution: 10 })
  let draining = false
  let sockets = () => 0
  registerGatewayMetrics(metrics, {
    counters,
    models,
    gate,
    eventLoop,
    sockets: () => sockets(),
    sessions: () => sessions.size,
    draining: () => draining,
  })
  const http: HttpParts = {
    gateway: parts,
    capabilities,
    addresses,
    state: { models, gate, metrics, draining: () => draining },
    admin: admin ? createAdminApi({ admin, open, models }) : null,
  }
  const listening = await openHttpServer({
    what: 'The gateway',
    host,
    port,
    tls,
    insecure,
    allowedHosts: [...allowedHosts, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])],
    limits,
    portError: 'GATEWAY_PORT_IN_USE',
    handle: createRequestHandler(http),
    onRefusal: (refusal) => counters.refusals[refusal]++,
  }).catch(async (error: unknown) => {
    await frozen.close()
    throw error
  })
  const url = publicUrl ?? listening.url
  sockets = listening.sockets
  eventLoop.enable()

  for (const model of models.all) {
    if (model.kind !== 'token') continue
    for (const message of model.historyNotes) warn({ code: 'TEMPLATE_REWRITES', message, details: { model: model.name } })
  }

  const beats = setInterval(() => {
    for (const { state } of sessions.values()) for (const call of state.calls) call.beat()
  }, limits.keepAwakeMs)

  /** The address of one agent: a fixed one if the session has it, else one that nobody can guess. */
  function grant({ rollout, attempt, address, agents }: SessionRequest, granted: Grant) {
    const agent = granted.agent.name
    if (!address) {
      const capability = capabilities.grant(rollout, attempt, agent, granted)
      const end = () => capabilities.revoke(capability)
      return { agent, end, endpoint: { baseUrl: `${url}/r/${capability}/v1`, apiKey: capability } }
    }
    if (agents.length !== 1) throw new TrainError('CONFIG_INVALID', 'A fixed address is that of one agent; declare one, or leave it out.')
    const { path, key } = address
    return { agent, end: addresses.grant(address, granted), endpoint: { baseUrl: `${url}${path && `/${path}`}/v1`, apiKey: key } }
  }

  function open(request: SessionRequest): PolicySession {
    const key = `${request.attempt}:${request.rollout}`
    if (sessions.has(key)) {
      const message = `Attempt ${request.attempt} of rollout "${request.rollout}" is open already; close it first.`
      throw new TrainError('GATEWAY_BAD_REQUEST', message)
    }
    const state = createSessionState(request, models)
    const granted = Array.from(state.agents.values(), (agent) => grant(request, { session: state, agent }))
    const revoke = () => {
      for (const { end } of granted) end()
      sessions.delete(key)
    }
    const release = () => {
      // An endless session has many affinities, and engines limit how many they keep.
      if (request.maxKeptTurns === undefined) for (const agent of state.agents.values()) models.forget(affinityOf(request, agent, () => ''))
      for (const agent of state.agents.values())
        for (const id of [...agent.over.splice(0), ...Array.from(agent.answers.values(), ({ id }) => id)]) recorder.forget(id)
    }
    const session = createSession({
      state,
      endpoints: new Map(granted.map(({ agent, endpoint }) => [agent, endpoint])),
      graceMs: limits.abortGraceMs,
      revoke,
      flush: recorder.flush,
      release,
    })
    sessions.set(key, { session, state })
    return session
  }

  return {
    url,
    open,
    pause: pauses.pause,
    resume: pauses.resume,
    onPause: pauses.onPause,
    registry: metrics,
    metrics: () => metrics.metrics(),
    notReady: () => notReady(http.state),
    async drain(signal) {
      draining = true
      if (signal.aborted) return
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([gate.drained(), aborted])
    },
    counts: () => toGatewayCounts(counters, gate.inside()),
    async close() {
      clearInterval(beats)
      pauses.close()
      draining = true
      eventLoop.disable()
      http.admin?.close()
      const closed = listening.close()
      await Promise.all(Array.from(sessions.values(), ({ session }) => session.close()))
      listening.server.closeAllConnections()
      await Promise.all([recorder.close(), frozen.close(), encoder.close()])
      await closed
    },
  }
}
