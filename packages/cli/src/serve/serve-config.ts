import { pathProblem } from '@aworld-train/gateway'
import { RolloutLimits, RowSelection, Sampling } from '@aworld-train/protocol'
import {
  AgentSettings,
  CallSettings,
  ExecutorSettings,
  FrozenModelSettings,
  PublicUrl,
  Secret,
  TlsFiles,
  ToolAnswerSettings,
  UnfinishedReward,
} from '@aworld-train/training'
import { z } from 'zod'

const port = z.int().min(0).max(65_535)
/** The longest time that a Node timer accepts; with a longer one it fires at once. */
const longestMs = 2 ** 31 - 1
const ms = z.int().min(1).max(longestMs)
const count = z.int().min(1)

/** Where a server listens. Beyond loopback it needs `tls`, or `insecure: true` where the network is trusted. */
const listener = {
  host: z.string().min(1).default('127.0.0.1'),
  tls: TlsFiles.nullable().default(null),
  insecure: z.boolean().default(false),
  /** Names beside those of loopback that requests may be for, where it listens on loopback without `tls`, such as that of a proxy before it. */
  allowedHosts: z
    .array(z.string().regex(/^([\w.-]+|\[[\da-f:]+\])$/i, 'must be a name alone, such as gateway.example, without scheme and port'))
    .default([]),
}

export const GatewaySettings = z.strictObject({
  ...listener,
  ...CallSettings.shape,
  port: port.default(8080),
  /** The address in the URLs of agents, where it differs from the one that the server listens on, such as the name in the certificate. */
  publicUrl: PublicUrl.nullable().default(null),
  /** Opens sessions over HTTP; `null` takes a random one and prints it. */
  adminToken: Secret.nullable().default(null),
  limits: z
    .strictObject({
      maxSockets: count.default(32_768),
      /** `null`: 8 x `maxPromptBytes` of the model with the largest and at least 1 MiB; 64 MiB beside models that render on their own side. */
      maxBodyBytes: count.nullable().default(null),
      maxHeaderBytes: z
        .int()
        .min(1024)
        .default(32 * 1024),
      headersTimeoutMs: ms.default(30_000),
      requestTimeoutMs: ms.default(300_000),
      keepAliveTimeoutMs: ms.default(75_000),
      keepAwakeMs: ms.default(60_000),
      abortGraceMs: ms.default(5_000),
      /** Sessions over HTTP that are open at once. */
      maxSessions: count.default(10_000),
      /** Memory for the records of sessions that have ended, each kept for ten minutes; the oldest make room. */
      maxKeptBytes: count.default(256 * 1024 * 1024),
    })
    .prefault({}),
})

/** Variables for every rendering of the chat template, such as `{ enable_thinking: false }`. */
const templateArguments = z.record(z.string().min(1), z.json()).default({})

/** Prompts of more bytes are refused before they are encoded, as too long for the context; `null`: 16 for each token of context. */
const maxPromptBytes = count.nullable().default(null)

const toolAnswers = ToolAnswerSettings.prefault({})
const { malformedCalls } = AgentSettings.shape
/** What the gateway makes of prompts and answers of a model that it renders for. */
const rendered = { maxPromptBytes, toolAnswers, malformedCalls }

const LocalModel = z.strictObject({
  kind: z.literal('local'),
  /** Hugging Face folder of the model. */
  path: z.string().min(1),
  simd: z.enum(['auto', 'plain', 'relaxed']).default('auto'),
  /** Worker threads; `null`: the machine's parallelism, at most 8. */
  threads: count.nullable().default(null),
  /** Calls that sample at once; `null`: what fits into a gigabyte, at most 64. */
  maxRows: count.nullable().default(null),
  templateArguments,
  ...rendered,
})

export const RemoteLimits = z.strictObject({
  /** Calls of one server at once, which are also its sockets. */
  maxInFlight: count.default(256),
  /** Calls that wait for a place. */
  maxWaiting: count.default(8_192),
  probeIntervalMs: ms.default(5_000),
  unavailableMs: ms.default(10_000),
})

const remote = {
  /** Base URLs of the servers, all with the same weights. */
  urls: z
    .array(
      z
        .string()
        .regex(/^https?:\/\//, 'must begin with http:// or https://')
        .regex(/(?<!\/v1\/*)$/, 'must end before /v1'),
    )
    .min(1),
  /** `token`: the gateway renders and sends token ids. `chat`: requests pass through and the server reports ids. */
  mode: z.enum(['token', 'chat']).default('token'),
  /** Folder with the model's tokenizer, template and config.json; for `token`. */
  folder: z.string().min(1).nullable().default(null),
  templateArguments,
  /** Longest conversation in tokens; `null`: that of config.json in `folder`. */
  contextLength: count.nullable().default(null),
  ...rendered,
  /** Name that the servers know the model or the adapter by; `null`: its name here. */
  served: z.string().min(1).nullable().default(null),
  /** Name of the LoRA adapter that the model is, beside another model of the same servers; `null`: the base weights. */
  policy: z.string().min(1).max(512).nullable().default(null),
  apiKey: Secret.nullable().default(null),
  /** Limits that models of the same servers share; set them at the first model that names the servers. */
  limits: RemoteLimits.prefault({}),
}
const VllmModel = z.strictObject({
  kind: z.literal('vllm'),
  ...remote,
  /** Of token engines: `generate` says which weights sampled which token and needs `--enable-scale-out`; every vLLM serves `completions`. */
  route: z.enum(['generate', 'completions']).default('generate'),
  /** What loads new weights: our extension of the worker, or vLLM's own method. */
  loadMethod: z.enum(['sync_from_dir', 'reload_weights']).default('sync_from_dir'),
})
const SglangModel = z.strictObject({ kind: z.literal('sglang'), ...remote })
const FrozenModel = FrozenModelSettings.extend({ kind: z.literal('frozen') })

/** A model that a driver samples, which is a trainer in a process of its own: it connects to `/v1/channel` on the port of `rollouts`. */
export const ChannelModel = z.strictObject({
  kind: z.literal('channel'),
  /** Hugging Face folder of its tokenizer and template; `null`: the trainer sends the files. */
  path: z.string().min(1).nullable().default(null),
  /** Rows that the trainer gets of an episode: every branch, the one that ended last, or the longest. */
  rows: RowSelection.default('all'),
  /** Whether an episode that ended at a limit is trained with its reward, or fails. */
  incompleteEpisodes: z.enum(['train', 'exclude']).default('train'),
  /** How long rollouts of a lost connection are kept. */
  graceMs: z.int().min(0).max(longestMs).default(30_000),
  /** Longest attempt of a rollout, which a submission may shorten; `null`: that of `rollouts.budget`. */
  rolloutTimeoutMs: ms.nullable().default(null),
  /** Longest answer of one model call, in tokens; `null`: what is left of a row's response. */
  maxCompletionTokens: count.nullable().default(null),
  ...rendered,
})
export type ChannelModel = z.infer<typeof ChannelModel>

export const ServeModel = z.discriminatedUnion('kind', [LocalModel, VllmModel, SglangModel, FrozenModel, ChannelModel])
export type ServeModel = z.infer<typeof ServeModel>
/** A model on servers of others. */
export type RemoteModel = z.infer<typeof VllmModel> | z.infer<typeof SglangModel>

/** One endless session for plain clients, whose base URL is printed. Above `maxCallsInFlight` they get 503. */
export const ClientSettings = z.strictObject({
  /** Every request must carry this key, and the base URL, `…/v1`, survives a restart. With `null` the URL itself is the secret, and differs from start to start. */
  key: Secret.nullable().default(null),
  /** With `key`, the path before `/v1`; `null` for none. */
  path: z
    .string()
    .min(1)
    .superRefine((path, context) => {
      const problem = pathProblem(path)
      if (problem) context.addIssue({ code: 'custom', message: problem })
    })
    .nullable()
    .default(null),
  maxCallsInFlight: count.default(256),
  /** Turns that are kept in memory. */
  maxKeptTurns: count.default(1_000),
})

export const RolloutSettings = z.strictObject({
  ...listener,
  port: port.default(8090),
  /** The address that workers get, where it differs from the one that the server listens on. */
  publicUrl: PublicUrl.nullable().default(null),
  /** Every request of a client or a driver must carry this token. With `null` none is needed on loopback; elsewhere a random one is made and printed. */
  token: Secret.nullable().default(null),
  /** The agent: `./agent.ts#name` or `./agent.yaml`. */
  agent: z.string().min(1),
  /** Scores episodes: `./reward.ts#name`; with `null` the client or the driver scores them. */
  reward: z.string().min(1).nullable().default(null),
  /** What a positional reward gets as `solutionStr`, how long one call may take, and the memory of its process. */
  rewardSettings: z
    .strictObject({
      input: z.enum(['answer', 'full-response']).default('answer'),
      timeoutMs: ms.default(30_000),
      memoryMb: z.int().min(16).default(256),
      unfinished: UnfinishedReward,
    })
    .prefault({}),
  /** Dataset with the answers that the reward compares with; a rollout of a task that is not there is refused. Without it every answer is `null`. */
  answers: z.string().min(1).nullable().default(null),
  /** Folders whose files tasks may name in `files`, links resolved; a rollout whose task names another file is refused. */
  taskFiles: z.array(z.string().min(1)).default([]),
  /** Rollouts at once; the rest queue. */
  concurrency: count.default(32),
  /** Where agents run. */
  executor: ExecutorSettings.prefault({}),
  /** New attempts after a temporary failure. */
  retries: z.int().min(0).default(2),
  /** Limits of requests that set none. */
  budget: RolloutLimits.prefault({}),
  limits: z
    .strictObject({
      maxQueuedBytes: count.default(1024 ** 3),
      maxSockets: count.default(16_384),
      maxBodyBytes: count.default(64 * 1024 * 1024),
      maxWaiting: count.default(8_192),
      maxWaitMs: ms.default(600_000),
    })
    .prefault({}),
})

export const EnvironmentSettings = z.strictObject({
  /** Folder that commands and paths of MCP servers are resolved from; `null`: that of the agent. */
  baseDirectory: z.string().min(1).nullable().default(null),
  callTimeoutMs: ms.default(120_000),
  startTimeoutMs: ms.default(30_000),
  /** Sets of fresh processes kept ready for each agent. */
  warmProcesses: z.int().min(0).default(1),
})

/** The file of `aworld-train serve --config`. Paths are relative to it. */
export const ServeConfig = z.strictObject({
  gateway: GatewaySettings.prefault({}),
  /** Models by the name that agents ask for; the first is the default. */
  models: z.record(z.string().min(1), ServeModel).refine((models) => Object.keys(models).length > 0, 'names no model; give at least one'),
  /** The model of calls that name none; `null` for the first of `models`. */
  defaultModel: z.string().min(1).nullable().default(null),
  /** Other names of a model; `"*"` is every name that is not known. */
  aliases: z.record(z.string().min(1), z.string().min(1)).default({}),
  seed: z.int().default(0),
  /** How earlier turns are rendered: as sampled inside a tool loop, always, or as the template does. */
  history: z.enum(['template', 'loop', 'as-sampled']).default('loop'),
  /** Sampling of plain clients; sessions and rollouts have their own. */
  sampling: Sampling.extend({ maxTokens: count.default(1_024) }).prefault({}),
  /** `null`: there is no session for plain clients. */
  clients: ClientSettings.nullable().prefault({}),
  /** Folder that turns, rollouts and events are kept in; `null` keeps nothing, and then there are no rollouts. */
  recording: z.string().min(1).nullable().default(null),
  /** `null`: the rollout service is off. */
  rollouts: RolloutSettings.nullable().default(null),
  environment: EnvironmentSettings.prefault({}),
  /** How long calls and rollouts may go on after a signal to stop. */
  drainMs: z.int().min(0).max(longestMs).default(30_000),
})
export type ServeConfig = z.infer<typeof ServeConfig>
