import { resolve } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import { type FixedAddress, TrainError } from '@aworld-train/core'
import { createLocalEngine } from '@aworld-train/engines/local'
import { createGateway } from '@aworld-train/gateway'
import { z } from 'zod'
import { DashboardOption, readDashboardOption } from '../dashboard-option.ts'
import { defineCommand } from '../define-command.ts'
import { readClientKey } from '../serve/read-serve-config.ts'
import { runServer } from '../serve/run-server.ts'
import { openTurnLog } from './turn-log.ts'

/** Most concurrent calls. Further ones get 503, so that a client that abandons its calls cannot pile up work. */
const maxCallsInFlight = 256

/** Most turns that the server keeps; it has no end, so it must forget. With 32,768 tokens of context these are about 130 MB of prompts. */
const maxKeptTurns = 1000

interface AddressOptions {
  readonly path?: string | undefined
  readonly keyEnv?: string | undefined
  readonly keyFile?: string | undefined
}

/** The address that is the same at every start; `null` if the options name none. Throws CONFIG_INVALID. */
function readAddress({ path, keyEnv, keyFile }: AddressOptions): FixedAddress | null {
  if (keyEnv !== undefined && keyFile !== undefined)
    throw new TrainError('CONFIG_INVALID', 'Name the key with --key-env or with --key-file, not both.')
  if (keyEnv !== undefined) return { path: path ?? '', key: readClientKey({ env: keyEnv }, '--key-env', '.') }
  if (keyFile !== undefined) return { path: path ?? '', key: readClientKey({ file: keyFile }, '--key-file', '.') }
  if (path === undefined) return null
  throw new TrainError(
    'CONFIG_INVALID',
    '--path needs --key-env or --key-file: a URL that can be guessed is open to every program that reaches it.',
  )
}

export const serve = defineCommand({
  arguments: [{ name: 'model', description: 'Hugging Face folder of the model; or give --config' }],
  options: z.object({
    config: z.string().optional().describe('configuration of gateway and rollout service (YAML or JSON), in place of all the rest'),
    host: z
      .string()
      .default('127.0.0.1')
      .describe('address to listen on; anything but loopback exposes the model and needs --insecure, or --config with tls'),
    port: z.int().min(0).max(65_535).default(8080).describe('port to listen on, 0 for any free one'),
    path: z
      .string()
      .optional()
      .describe('first part of the base URL, which is then the same at every start; needs --key-env or --key-file'),
    keyEnv: z
      .string()
      .optional()
      .describe('environment variable with the key that clients send; the base URL is then the same at every start'),
    keyFile: z.string().optional().describe('file with that key'),
    insecure: z.boolean().optional().describe('listen beyond loopback without encryption, on a network that is trusted'),
    temperature: z.number().min(0).default(1).describe('sampling temperature; 0 is greedy'),
    maxTokens: z.int().min(1).default(512).describe('tokens of one completion'),
    seed: z.int().min(0).default(0).describe('seed of sampling'),
    dashboard: DashboardOption.describe(
      'with --config, the dashboard of the rollouts that are recorded, on this machine: on (the default), off, or its port',
    ),
    record: z.string().optional().describe('file that every turn is appended to, one JSON line each'),
    simd: z.enum(['auto', 'plain', 'relaxed']).default('auto').describe('kind of SIMD'),
  }),
  async run({ args, options, signal }) {
    const [folder] = args
    if ((folder === undefined) === (options.config === undefined)) {
      throw new TrainError('CONFIG_INVALID', 'Name the folder of a model, or a configuration with --config FILE; not both.')
    }
    if (options.config !== undefined) {
      const dashboard = readDashboardOption(options.dashboard) ?? true
      await runServer({ file: options.config, dashboard, signal, write: (text) => void process.stdout.write(text) })
      return undefined
    }
    const address = readAddress(options)
    await using stack = new AsyncDisposableStack()
    const model = resolve(folder as string)
    const local = stack.adopt(await createLocalEngine({ model, simd: options.simd }), (each) => each.close())
    const chat = await loadChatModel({ directory: model, stopTokenIds: local.engine.model.stopTokenIds })
    const record =
      options.record === undefined ? undefined : stack.adopt(await openTurnLog(resolve(options.record)), (each) => each.close())
    const gateway = stack.adopt(
      await createGateway({
        models: { [local.engine.model.name]: { kind: 'token', engine: local.engine, chat } },
        aliases: { '*': local.engine.model.name },
        seed: options.seed,
        host: options.host,
        port: options.port,
        insecure: options.insecure === true,
      }),
      (each) => each.close(),
    )
    const session = gateway.open({
      rollout: 'serve',
      attempt: 0,
      taskId: 'serve',
      sample: 0,
      policy: local.engine.name,
      sampling: { temperature: options.temperature, topP: 1, topK: 0, maxTokens: options.maxTokens, stop: [], seed: options.seed },
      agents: [{ name: 'client', trainable: true }],
      maxKeptTurns,
      maxCallsInFlight,
      ...(address && { address }),
      ...(record && { onTurn: (_, turn) => record.append(turn) }),
    })
    const { baseUrl, model: name } = session.endpoint('client')
    process.stdout.write(
      `model    ${name}, ${local.tier.simd} SIMD, ${local.tier.threads} threads\nbaseURL  ${baseUrl}\n         ${address ? 'the key that was named' : 'any API key'}; the last ${maxKeptTurns} turns are kept in memory, ${options.record === undefined ? 'no turn on disk (--record FILE)' : `every turn in ${options.record}`}; Ctrl-C ends\n`,
    )
    await new Promise<void>((done) => (signal.aborted ? done() : signal.addEventListener('abort', () => done(), { once: true })))
    await session.close()
    return undefined
  },
})
