import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning, LeaseQuota, TrainError } from '@aworld-train/core'
import { z } from 'zod'
import { defineCommand } from '../define-command.ts'
import { askStatus, findRunning } from '../environment/ask-environment.ts'
import { environmentFiles } from '../environment/environment-files.ts'
import { connectionText } from '../environment/print-connection.ts'
import { writeProjectServer } from '../environment/project-servers.ts'
import { startInBackground } from '../environment/start-in-background.ts'
import { statusText } from '../environment/status-text.ts'
import { exitCodes } from '../exit-codes.ts'
import { typedCommand } from '../typed-command.ts'

const dayMs = 86_400_000
/** How long an environment may take to stop; it ends every lease first. */
const stopMs = 30_000

// Tool servers are a quarter of the code to load, so only the actions that use them import them.
const write = (text: string) => void process.stdout.write(text)

const options = z.object({
  host: z.string().default('127.0.0.1').describe('start: address to listen on; anything but loopback needs --insecure'),
  port: z.int().min(0).max(65_535).default(8000).describe('start: port to listen on, 0 for any free one'),
  publicUrl: z
    .string()
    .optional()
    .describe('start: address at which agents reach this server, such as https://tools.example.com/mcp (default: where it listens)'),
  sharedUrl: z
    .string()
    .optional()
    .describe('start: address of several servers with one signing key; a connection token opens all of them, a lease is on one'),
  signingKey: z
    .string()
    .optional()
    .describe('start, token: file with the Ed25519 key that signs tokens, in PEM (default: one of this folder, made by the first start)'),
  maxLeases: z.int().min(1).default(1024).describe('start: leases that may be open at once'),
  readyBrowsers: z
    .int()
    .min(0)
    .max(256)
    .default(0)
    .describe('start: browsers that wait for the next leases once leases browse, each with 200 MB; 0: they start with their leases'),
  desktopPort: z
    .int()
    .min(0)
    .max(65_535)
    .default(5901)
    .describe('start: port of the page that shows desktops, which opens with the first lease that has one; 0 for any free one'),
  insecure: z.boolean().optional().describe('start: listen beyond loopback without encryption, on a network that is trusted'),
  ttl: z.number().min(0.01).max(3650).default(30).describe('start, token: days that the connection token lives'),
  tier: z
    .enum(['auto', 'bubblewrap', 'simulated'])
    .default('auto')
    .describe('start: what commands run in; auto takes bubblewrap where it works, else the simulation'),
  maxQuota: z
    .string()
    .default('{}')
    .describe('start: the most that a lease may ask for, as JSON such as {"memoryBytes": 34359738368}; see quota in lease-open.json'),
  net: z
    .enum(['ask', 'never'])
    .default('ask')
    .describe('start: whether the commands of a lease that asks for it ("net" in mcpServers) reach the public web, or those of none'),
  keys: z.string().optional().describe('start: file with keys (default: .env, where there is one)'),
  record: z.string().optional().describe('start: file that every first answer of the web and of services is recorded in'),
  replay: z.string().optional().describe('start: file that such answers are replayed from; nobody is asked'),
  miss: z
    .enum(['error', 'live'])
    .optional()
    .describe('start: what a replay does without a recorded answer: an error for the model (the default), or a live request'),
  foreground: z.boolean().optional().describe('start: stay in this terminal'),
})
type Options = z.output<typeof options>

const actions: Readonly<Record<string, (options: Options, signal: AbortSignal, name?: string) => Promise<number>>> = {
  start,
  status: showStatus,
  token: printToken,
  stop,
  'new-server': async (_options, _signal, name = '') => {
    for (const file of await writeProjectServer('.', name)) write(`${file}\n`)
    return exitCodes.done
  },
  template: async () => {
    const { settingsTemplate } = await import('@aworld-train/tools')
    write(settingsTemplate())
    return exitCodes.done
  },
}

export const env = defineCommand({
  arguments: [
    { name: 'action', description: `${Object.keys(actions).join(', ')} (of .env)`, required: true },
    { name: 'name', description: 'new-server: name of the tool server to write into tool-servers/NAME' },
  ],
  options,
  async run({ args, options, signal }) {
    const action = actions[args[0] ?? '']
    if (action) return await action(options, signal, args[1])
    throw new TrainError('CONFIG_INVALID', `There is no "env ${args[0]}"; there is: ${Object.keys(actions).join(', ')}.`)
  },
})

async function start(options: Options, signal: AbortSignal): Promise<number> {
  const {
    host,
    port,
    publicUrl,
    sharedUrl,
    signingKey,
    maxLeases,
    readyBrowsers,
    desktopPort,
    insecure = false,
    ttl,
    tier,
    net,
    keys,
    record,
    replay,
    miss,
  } = options
  if (record !== undefined && replay !== undefined)
    throw new TrainError('CONFIG_INVALID', 'Give --record or --replay, not both: a recording goes on where it ended by itself.')
  if (miss !== undefined && replay === undefined)
    throw new TrainError('CONFIG_INVALID', 'Give --miss with --replay: it says what a replay does without a recorded answer.')
  const maxQuota = readQuota(options.maxQuota)
  const files = environmentFiles('.')
  const running = await findRunning(files)
  if (running) {
    const { url, pid } = running.connection
    throw new TrainError(
      'ENVIRONMENT_START_FAILED',
      `The environment of this folder runs already, at ${url} (process ${pid}); "${typedCommand(['env', 'stop'])}" ends it.`,
    )
  }
  if (options.foreground !== true) {
    const connection = await startInBackground(files, [...process.argv.slice(2), '--foreground'], signal)
    write(connectionText(connection, (await askStatus(connection))?.servers ?? []))
    process.stderr.write(`${typedCommand(['env', 'status'])} says what it can do, ${typedCommand(['env', 'stop'])} ends it\n`)
    return exitCodes.done
  }
  const path = record ?? replay
  const { serveEnvironment } = await import('../environment/serve-environment.ts')
  const serving = await serveEnvironment({
    files,
    host,
    port,
    publicUrl,
    sharedUrl,
    keyFile: signingKey,
    maxLeases,
    readyBrowsers,
    desktopPort,
    insecure,
    connectionTtlMs: ttl * dayMs,
    tier,
    maxQuota,
    mayOpenNet: net === 'ask',
    keys,
    cassette: path === undefined ? undefined : { path, mode: record === undefined ? 'replay' : 'record', miss },
  })
  await using stack = new AsyncDisposableStack()
  const { connection, server, notices } = stack.adopt(serving, (each) => each.close())
  write(connectionText(connection, server.status().servers))
  for (const notice of notices) process.stderr.write(`${notice}\n`)
  if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  return exitCodes.done
}

function readQuota(text: string): LeaseQuota {
  try {
    return LeaseQuota.parse(JSON.parse(text))
  } catch (cause) {
    const names = Object.keys(LeaseQuota.shape).join(', ')
    const [problem] = cause instanceof z.ZodError ? cause.issues : []
    const reason = problem ? ` (${problem.path.join('.') || 'it'}: ${problem.message})` : ''
    throw new TrainError('CONFIG_INVALID', `--max-quota is ${text}${reason}; write a JSON object with whole numbers for any of ${names}.`, {
      cause,
    })
  }
}

async function showStatus(): Promise<number> {
  const running = await findRunning(environmentFiles('.'))
  if (!running) {
    write(`no environment runs here; "${typedCommand(['env', 'start'])}" starts one\n`)
    return exitCodes.failed
  }
  const { status, connection } = running
  write(status ? statusText(status) : `the environment at ${connection.url} (process ${connection.pid}) does not answer\n`)
  return status ? exitCodes.done : exitCodes.failed
}

async function printToken({ ttl, signingKey }: Options): Promise<number> {
  const files = environmentFiles('.')
  const running = await findRunning(files)
  if (!running)
    throw new TrainError('ENVIRONMENT_START_FAILED', `No environment runs here; "${typedCommand(['env', 'start'])}" starts one.`)
  const { mintConnectionToken } = await import('@aworld-train/tools')
  write(`${await mintConnectionToken(signingKey ?? files.key, running.connection.url, ttl * dayMs)}\n`)
  return exitCodes.done
}

async function stop(): Promise<number> {
  const files = environmentFiles('.')
  const running = await findRunning(files)
  if (!running) {
    write('no environment runs here\n')
    return exitCodes.done
  }
  const { connection, status } = running
  // The process does not answer, so its number may belong to another program by now.
  if (!status)
    throw new TrainError(
      'ENVIRONMENT_START_FAILED',
      `The environment at ${connection.url} does not answer; end process ${connection.pid} yourself if it is the environment, else remove ${files.connection}.`,
    )
  process.kill(connection.pid, 'SIGTERM')
  const late = Date.now() + stopMs
  while (isRunning(connection.pid)) {
    if (Date.now() > late)
      throw new TrainError(
        'ENVIRONMENT_START_FAILED',
        `Process ${connection.pid} has not ended after ${stopMs / 1_000} s; end it yourself.`,
      )
    await sleep(50)
  }
  write('stopped\n')
  return exitCodes.done
}
