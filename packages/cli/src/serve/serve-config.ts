import { RolloutLimits, RowSelection, Sampling } from '@aworld-train/core'
import { pathProblem } from '@aworld-train/gateway'
import {
  AgentSettings,
  CollectSettings,
  FrozenModelSettings,
  LocalConfig,
  PublicUrl,
  Secret,
  ToolAnswerSettings,
} from '@aworld-train/training'
import { z } from 'zod'

const port = z.int().min(0).max(65_535)
/** The longest time that a Node timer accepts. A longer one fires at once. */
const longestMs = 2 ** 31 - 1
const ms = z.int().min(1).max(longestMs)
const count = z.int().min(1)

const { history, templateArguments, maxPromptBytes } = LocalConfig.shape.model.unwrap().shape
const { ownReward } = LocalConfig.shape.training.unwrap().shape
const { simd, threads } = LocalConfig.shape.engine.unwrap().shape
const gatewayOfTraining = LocalConfig.shape.gateway.unwrap()

/** The address that a server listens on. */
const listener = {
  host: gatewayOfTraining.shape.host.describe(
    'Address that the server listens on. Beyond loopback it needs `tls`, or `insecure` on a network that you trust.',
  ),
  tls: gatewayOfTraining.shape.tls.describe('Certificate of the server, for HTTPS. `null` speaks plain HTTP.'),
  insecure: gatewayOfTraining.shape.insecure,
  allowedHosts: z
    .array(z.string().regex(/^([\w.-]+|\[[\da-f:]+\])$/i, 'must be a name alone, such as gateway.example, without scheme and port'))
    .default([])
    .describe(
      'Host names that requests may be for, beside those of loopback, such as that of a proxy. It holds on loopback without `tls`; a request for another name gets 421.',
    ),
}

const GatewaySettings = gatewayOfTraining.extend({
  ...listener,
  port: port.default(8080).describe('Port of the gateway. 0 takes any free one.'),
  publicUrl: gatewayOfTraining.shape.publicUrl.describe(
    'Address in the URLs of agents, where it differs from the one that the server listens on, such as the name in the certificate.',
  ),
  adminToken: Secret.nullable()
    .default(null)
    .describe('Token that opens sessions over HTTP and updates weights. `null` takes a random one and prints it.'),
  limits: z
    .strictObject({
      maxSockets: count.default(32_768).describe('Connections at once. Another one is closed.'),
      maxBodyBytes: count
        .nullable()
        .default(null)
        .describe(
          'Largest body of a request, in bytes. A larger one is answered 413 unread. `null` allows 8 times the `maxPromptBytes` of the model with the largest, and at least 1 MiB; beside models that render on their own side it allows 64 MiB.',
        ),
      maxHeaderBytes: z
        .int()
        .min(1024)
        .default(32 * 1024)
        .describe('Size that the headers of a request may have together, in bytes.'),
      headersTimeoutMs: ms.default(30_000).describe('Time that a client has to send its headers, in milliseconds.'),
      requestTimeoutMs: ms
        .default(300_000)
        .describe('Time that a client has to send its whole request, in milliseconds. The answer has no time limit.'),
      keepAliveTimeoutMs: ms.default(75_000).describe('Time after which an idle connection is closed, in milliseconds.'),
      keepAwakeMs: ms
        .default(60_000)
        .describe(
          'Time between two bytes of white space that a waiting call is sent, in milliseconds, so that its client does not give up.',
        ),
      abortGraceMs: ms
        .default(5_000)
        .describe(
          'Time that the gateway waits for an aborted call of an engine, or for a client that does not read its answer, in milliseconds.',
        ),
      maxSessions: count.default(10_000).describe('Sessions over HTTP that are open at once. Another one is refused.'),
      maxKeptBytes: count
        .default(256 * 1024 * 1024)
        .describe('Memory for the records of sessions that have ended, in bytes. Each is kept for ten minutes; the oldest make room.'),
    })
    .prefault({}),
})

const toolAnswers = ToolAnswerSettings.prefault({})
const { malformedCalls } = AgentSettings.shape
/** The gateway's treatment of prompts and answers of a model that it renders for. */
const rendered = { maxPromptBytes, toolAnswers, malformedCalls }

const LocalModel = z
  .strictObject({
    kind: z.literal('local').describe('A model of the engine in the box.'),
    path: z.string().min(1).describe('Folder of the model in the form of Hugging Face.'),
    simd,
    threads,
    maxRows: count.nullable().default(null).describe('Calls that sample at once. `null` allows what fits into a gigabyte, at most 64.'),
    templateArguments,
    ...rendered,
  })
  .describe('A model that the engine in the box samples, in this process.')

export const RemoteLimits = z.strictObject({
  maxInFlight: count.default(256).describe('Calls of one server at once, which are also its sockets.'),
  maxWaiting: count.default(8_192).describe('Calls that wait for a server. Another one is refused with `POLICY_RATE_LIMITED`.'),
  probeIntervalMs: ms.default(5_000).describe('Time between two checks of whether a server is well, in milliseconds.'),
  unavailableMs: ms.default(10_000).describe('Time that a call waits while no server is well, in milliseconds.'),
})

const remote = {
  urls: z
    .array(
      z
        .string()
        .regex(/^https?:\/\//, 'must begin with http:// or https://')
        .regex(/(?<!\/v1\/*)$/, 'must end before /v1'),
    )
    .min(1)
    .describe('Base URLs of the servers, without `/v1`. All of them have the same weights.'),
  mode: z
    .enum(['token', 'chat'])
    .default('token')
    .describe('`token`: the gateway renders and sends token ids. `chat`: requests pass through, and the server reports the ids.'),
  folder: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Folder with the model's tokenizer, chat template and `config.json`. `mode: token` needs it."),
  templateArguments,
  contextLength: count
    .nullable()
    .default(null)
    .describe('Longest conversation, in tokens. `null` takes that of `config.json` in `folder`.'),
  ...rendered,
  served: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Name that the servers have for the model or the adapter. `null` takes its name here.'),
  policy: z
    .string()
    .min(1)
    .max(512)
    .nullable()
    .default(null)
    .describe('Name of the LoRA adapter that this model is, beside another model of the same servers. `null` means the base weights.'),
  apiKey: Secret.nullable().default(null).describe('Key that the servers ask for. `null` sends none.'),
  limits: RemoteLimits.prefault({}),
}
const VllmModel = z
  .strictObject({
    kind: z.literal('vllm').describe('A model on vLLM servers.'),
    ...remote,
    route: z
      .enum(['generate', 'completions'])
      .default('generate')
      .describe(
        'Route of vLLM that samples, with `mode: token`: `generate` says which weights sampled which token, and needs `--enable-scale-out`; every vLLM has `completions`.',
      ),
    loadMethod: z
      .enum(['sync_from_dir', 'reload_weights'])
      .default('sync_from_dir')
      .describe("Method that loads new weights: our extension of vLLM's worker (`sync_from_dir`), or vLLM's own (`reload_weights`)."),
  })
  .describe('A model that vLLM servers sample. Models of the same servers share `limits`; set them at the first of them.')
const SglangModel = z
  .strictObject({ kind: z.literal('sglang').describe('A model on SGLang servers.'), ...remote })
  .describe('A model that SGLang servers sample. Models of the same servers share `limits`; set them at the first of them.')
const FrozenModel = FrozenModelSettings.extend({ kind: z.literal('frozen').describe('A model of a third party.') }).describe(
  'A model of a third party, which is recorded as text and never trained.',
)

/** A model that a trainer client samples, which is a trainer in a process of its own: it connects to `/v1/channel` on the port of `rollouts`. */
export const ChannelModel = z
  .strictObject({
    kind: z.literal('channel').describe('A model of a trainer that connects.'),
    path: z
      .string()
      .min(1)
      .nullable()
      .default(null)
      .describe('Folder of its tokenizer and chat template, in the form of Hugging Face. With `null` the trainer sends these files.'),
    rows: RowSelection.default('all').describe(
      'Rows that the trainer gets of an episode: `all` branches, the `last` one, which gave the answer, the `longest`, or with `{ role: planner }` the last one of agent `planner`.',
    ),
    incompleteEpisodes: z
      .enum(['train', 'exclude'])
      .default('train')
      .describe('Episodes that ended at a limit: `train` gives the trainer their rows and reward, with `exclude` they have failed.'),
    ownReward,
    graceMs: z
      .int()
      .min(0)
      .max(longestMs)
      .default(30_000)
      .describe('Time that a trainer has to connect again, in milliseconds. Its rollouts are kept meanwhile, and cancelled after it.'),
    rolloutTimeoutMs: ms
      .nullable()
      .default(null)
      .describe('Wall time of one attempt of a rollout, in milliseconds; a submission may shorten it. `null` takes that of `limits`.'),
    maxCompletionTokens: count
      .nullable()
      .default(null)
      .describe('Tokens that one answer of the model may have. `null` allows what is left of the response of a row.'),
    ...rendered,
  })
  .describe('A model that a trainer samples, in a process of its own. The trainer connects to `/v1/channel` on the port of `rollouts`.')
export type ChannelModel = z.infer<typeof ChannelModel>

export const ServeModel = z.discriminatedUnion('kind', [LocalModel, VllmModel, SglangModel, FrozenModel, ChannelModel])
export type ServeModel = z.infer<typeof ServeModel>
/** A model on servers of others. */
export type RemoteModel = z.infer<typeof VllmModel> | z.infer<typeof SglangModel>

const ClientSettings = z.strictObject({
  key: Secret.nullable()
    .default(null)
    .describe(
      'Key that every request must carry; the base URL, `…/v1`, is then the same after a restart. With `null` the URL itself is the secret, and every start has another.',
    ),
  path: z
    .string()
    .min(1)
    .superRefine((path, context) => {
      const problem = pathProblem(path)
      if (problem) context.addIssue({ code: 'custom', message: problem })
    })
    .nullable()
    .default(null)
    .describe('Path before `/v1` of the base URL, where `clients.key` is set. `null` takes none.'),
  maxCallsInFlight: count.default(256).describe('Calls of plain clients at once. Another one is answered 503.'),
  maxKeptTurns: count
    .default(1_000)
    .describe('Turns of plain clients that stay in memory, so that a call can continue an earlier one. Beyond it a new record begins.'),
})

const RolloutSettings = z.strictObject({
  ...listener,
  port: port.default(8090).describe('Port of the rollout service. 0 takes any free one.'),
  publicUrl: PublicUrl.nullable()
    .default(null)
    .describe('Address that workers get, where it differs from the one that the server listens on.'),
  token: Secret.nullable()
    .default(null)
    .describe(
      'Token that every request of a client or a trainer must carry. With `null` none is needed on loopback; elsewhere a random one is made and printed.',
    ),
  agent: z.string().min(1).describe('The agent: `./agent.ts#name` or `./agent.yaml`.'),
  answers: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Dataset with the answers that the reward compares with. A rollout of a task that is not in it is refused. With `null` every answer is `null`.',
    ),
  taskFiles: z
    .array(z.string().min(1))
    .default([])
    .describe('Folders whose files a task may name in `files`, with links resolved. A rollout whose task names another file is refused.'),
  concurrency: count.default(32).describe('Rollouts that run at once, over all workers. The rest wait.'),
  retries: z.int().min(0).default(2).describe('Times that a rollout begins again after a temporary failure.'),
  limits: z
    .strictObject({
      maxQueuedBytes: count.default(1024 ** 3).describe('Size of all rollouts that wait, in bytes. Another one is answered 503.'),
      maxSockets: count.default(16_384).describe('Connections at once. Another one is closed.'),
      maxBodyBytes: count.default(64 * 1024 * 1024).describe('Largest body of a request, in bytes. A larger one is answered 413.'),
      maxWaiting: count.default(8_192).describe('Requests that wait for a rollout or stream events at once. Another one is answered 503.'),
      maxWaitMs: ms.default(600_000).describe('Longest `wait` of a request, in milliseconds. A longer one is cut to it.'),
    })
    .prefault({}),
})

const EnvironmentSettings = z.strictObject({
  baseDirectory: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder that commands and paths of MCP servers are resolved from. `null` takes that of the agent.'),
  callTimeoutMs: ms
    .default(120_000)
    .describe('Time that one tool call may take, in milliseconds, where the configuration of its server says nothing else.'),
  startTimeoutMs: ms.default(30_000).describe('Time that an MCP server has to start and list its tools, in milliseconds.'),
  collect: CollectSettings,
  warmProcesses: z
    .int()
    .min(0)
    .default(1)
    .describe('Sets of fresh processes that are kept ready for each agent, so that a rollout need not wait for their start.'),
})

/** The file of `aworld-train serve --config`. Paths are relative to it. */
export const ServeConfig = z.strictObject({
  gateway: GatewaySettings.prefault({}).describe('The gateway, which agents send their model calls to.'),
  models: z
    .record(z.string().min(1), ServeModel)
    .refine((models) => Object.keys(models).length > 0, 'names no model; give at least one')
    .describe('Models by the name that agents ask for, each of one `kind`.'),
  defaultModel: z.string().min(1).nullable().default(null).describe('Model of calls that name none. `null` takes the first of `models`.'),
  aliases: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe('Other names of a model, such as `{ gpt-4o: policy }`. The name `"*"` stands for every name that is not known.'),
  seed: z.int().default(0).describe('Seed of every random draw.'),
  history,
  sampling: Sampling.extend({ maxTokens: Sampling.shape.maxTokens.default(1_024) })
    .prefault({})
    .describe('Sampling of plain clients that say nothing else. Sessions and rollouts have their own.'),
  clients: ClientSettings.nullable()
    .prefault({})
    .describe('The one session for plain clients, which never ends and whose base URL is printed. With `null` there is none.'),
  recording: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder that turns, rollouts and events are kept in. `null` keeps nothing, and then there are no rollouts.'),
  rollouts: RolloutSettings.nullable()
    .default(null)
    .describe('The rollout service, which runs agents and scores them. With `null` it is off.'),
  reward: LocalConfig.shape.reward
    .unwrap()
    .prefault({})
    .describe('The score of an episode of `rollouts`. Without `path` the client or the trainer scores it.'),
  limits: LocalConfig.shape.limits
    .unwrap()
    .extend({
      timeoutMs: ms
        .nullable()
        .default(null)
        .describe(
          'Wall time of one attempt of a rollout, in milliseconds. A longer attempt ends there. `null` allows what whoever submits it does, or 120000.',
        ),
      maxResponseTokens: RolloutLimits.shape.maxResponseTokens
        .unwrap()
        .nullable()
        .default(null)
        .describe('Tokens of one conversation from the first sampled one on, tool results included. `null` sets no limit.'),
    })
    .prefault({})
    .describe('What one of `rollouts` may take. An episode that reaches a limit ends there.'),
  executor: LocalConfig.shape.executor.describe(
    'Where the agents of `rollouts` run. Model calls, rewards and records stay in this process.',
  ),
  evaluation: LocalConfig.shape.evaluation
    .unwrap()
    .pick({ kindKey: true })
    .prefault({})
    .describe('How results are shown. Whoever submits rollouts says how those of an evaluation are sampled.'),
  environment: EnvironmentSettings.prefault({}).describe('The MCP servers of agents.'),
  drainMs: z
    .int()
    .min(0)
    .max(longestMs)
    .default(30_000)
    .describe('Time that calls and rollouts have to end after a signal to stop, in milliseconds. What is left is cut off.'),
})
export type ServeConfig = z.infer<typeof ServeConfig>
