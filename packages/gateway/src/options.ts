import type { PolicyGateway, TrainedCalls, Turn, WeightPublication, WeightReport } from '@aworld-train/core'
import type { HttpLimits, TlsIdentity } from '@aworld-train/http'
import type { Registry } from 'prom-client'
import type { ModelRoute } from './models/routes.ts'

/** Explicit limits of the HTTP side; nothing here bounds how long a completion may take. */
export interface GatewayLimits extends HttpLimits {
  /**
   * Largest request body, in bytes. `null` means 8 times the largest prompt of the model and at least 1 MiB, or 64 MiB for models
   * that render prompts themselves.
   */
  readonly maxBodyBytes: number | null
  readonly maxHeaderBytes: number
  /** How long a client may take to send its headers. */
  readonly headersTimeoutMs: number
  /** How long a client may take to send its whole request. The answer has no time limit. */
  readonly requestTimeoutMs: number
  /** How long an idle connection stays open. */
  readonly keepAliveTimeoutMs: number
  /**
   * How often a waiting call is sent white space, or a comment in a stream. `fetch` gives up after 300 s without a byte, which would end
   * only the longest completions. A failure after that has status 200 and an error as its body.
   */
  readonly keepAwakeMs: number
  /** How long the gateway waits for an aborted engine call, or for a client that does not read its answer. */
  readonly abortGraceMs: number
}

export const defaultLimits: GatewayLimits = {
  maxSockets: 32_768,
  maxBodyBytes: null,
  maxHeaderBytes: 32 * 1024,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 300_000,
  keepAliveTimeoutMs: 75_000,
  keepAwakeMs: 60_000,
  abortGraceMs: 5_000,
}

/** A warning about a run, given once. */
export interface GatewayWarning {
  /**
   * `BRANCH_EXPLOSION`: an agent rewrites its past at every call. `TEMPLATE_REWRITES`: the chat template does so. `PAUSE_OVERRUN`: nobody
   * resumed. `HOSTED_TOOLS`: an agent declares tools that a provider would run. `OTHER_MODEL`: a third party's answers name another model.
   * `MODEL_BUSY`: a third party refuses calls for load, again and again.
   */
  readonly code: 'BRANCH_EXPLOSION' | 'TEMPLATE_REWRITES' | 'PAUSE_OVERRUN' | 'HOSTED_TOOLS' | 'OTHER_MODEL' | 'MODEL_BUSY'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Receives problems that no caller sees. */
export interface GatewayLogger {
  warn(message: string, details?: Record<string, unknown>): void
}

/** A turn of a session that was opened over HTTP. */
export interface AdminTurn {
  readonly rollout: string
  readonly attempt: number
  readonly agent: string
  readonly turn: Turn
}

/** Carries out an update of a model's weights. It runs to its end even if its caller goes away; the signal aborts with the gateway. */
export type PublishWeights = (publication: WeightPublication, signal: AbortSignal) => Promise<WeightReport>

export interface AdminOptions {
  /** Sent as `Authorization: Bearer …`; at least 16 characters. */
  readonly token: string
  /** Awaited before the turn's answer is sent. */
  readonly onTurn?: ((turn: AdminTurn) => Promise<void>) | undefined
  /** Most sessions that are open at once. Default 10,000. */
  readonly maxSessions?: number | undefined
  /** Most bytes of the records of ended sessions. The oldest make room. Default 256 MiB. */
  readonly maxKeptBytes?: number | undefined
  /** How long the record of a session is kept after its end. Default 600,000. */
  readonly keptMs?: number | undefined
  /** Models whose weights other programs may update, by name. */
  readonly weights?: Readonly<Record<string, PublishWeights>> | undefined
}

export interface GatewayOptions {
  /** The models that agents may call, by name. The caller closes their engines. */
  readonly models: Readonly<Record<string, ModelRoute>>
  /** The model of calls that name none. Default: the first of `models`. */
  readonly defaultModel?: string | undefined
  /**
   * Other names of a model, such as `{ 'gpt-4o': 'policy' }`. `'*'` stands for every unknown name in a request, never for
   * a name that a session declares.
   */
  readonly aliases?: Readonly<Record<string, string>> | undefined
  /**
   * How tools that a provider would run, such as `web_search`, are treated: left out of the prompt and counted
   * (default), or refused with their calls.
   */
  readonly hostedTools?: 'leave-out' | 'refuse' | undefined
  /**
   * Regular expressions of text that agents may change in their own messages from call to call, such as a date. The first call's text
   * stays. They cannot be used beside models that render prompts themselves.
   */
  readonly ignore?: readonly string[] | undefined
  /** Calls that are trained. Default `with-tools`: an agent that has tools is trained on calls that offer them. */
  readonly trainedCalls?: TrainedCalls | undefined
  /** Seed of the run; part of every call's random key. */
  readonly seed: number
  /** Defaults to loopback. */
  readonly host?: string | undefined
  /** 0 (the default) takes any free port. */
  readonly port?: number | undefined
  /** Certificate and key. Without them the server listens on loopback only, unless `insecure` says that the network is trusted. */
  readonly tls?: TlsIdentity | undefined
  readonly insecure?: boolean | undefined
  /**
   * The address in the URLs of agents, without a path, if it differs from the one that the server listens on,
   * such as a name in the certificate.
   */
  readonly publicUrl?: string | undefined
  /** Names that `Host` may have where the server listens on loopback without TLS, besides those of loopback and that of `publicUrl`. */
  readonly allowedHosts?: readonly string[] | undefined
  /** Lets other programs open sessions over HTTP. */
  readonly admin?: AdminOptions | undefined
  readonly limits?: Partial<GatewayLimits> | undefined
  /** Longest pause. After it a pause ends by itself, with a warning. Without it a pause lasts until `resume`. */
  readonly maxPauseMs?: number | undefined
  readonly logger?: GatewayLogger | undefined
  /** Registry of its metrics, so that `/metrics` also shows those of the caller. */
  readonly registry?: Registry | undefined
  /** Called with each warning; without it warnings go to `logger`. */
  readonly onWarning?: ((warning: GatewayWarning) => void) | undefined
}

/** A listening gateway. `url` has neither path nor final slash. */
export interface Gateway extends PolicyGateway {
  readonly url: string
  /** Reasons why the gateway is not ready for new work; empty if it is. `/ready` says the same. */
  notReady(): readonly string[]
  /** Metrics that `/metrics` shows. A caller may add its own. */
  readonly registry: Registry
  /** The text of `/metrics`. */
  metrics(): Promise<string>
  /** Reports that it is not ready from then on, but goes on serving. Resolves when no call is in flight, or when the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
}
