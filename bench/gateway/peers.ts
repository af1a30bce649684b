import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { freePort } from '../../test/support/process-group.ts'
import { pythonEnvironment } from '../../test/support/python-environment.ts'
import { processTree } from './process-tree.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const cache = fileURLToPath(new URL('../../.aworld-train/bench/', import.meta.url))
/** Gateways run on this core, load and engine on the other. */
export const gatewayCore = 0
export const loadCore = 1
const portkeyVersion = '1.15.2'

/** A gateway that runs in a process of its own. */
export interface RunningGateway extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  /** Where Chat Completions are served: one path a client, in turns. */
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
}

export interface StartOptions {
  readonly upstreamPort: number
  readonly connections: number
}

/** Starts a program and ends it, with all that it started, when it is disposed of. With `core` it runs on that one alone. */
export function startProcess(program: string, programArgs: readonly string[], env: NodeJS.ProcessEnv = {}, core?: number) {
  const [command, args] = core === undefined ? [program, programArgs] : ['taskset', ['-c', String(core), program, ...programArgs]]
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let output = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-4000)
  })
  return { child, errors: () => output, [Symbol.asyncDispose]: () => endProcess(child) }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const tree = processTree(child.pid)
  const exited = once(child, 'exit')
  const signal = (name: NodeJS.Signals) => {
    for (const pid of tree) {
      try {
        process.kill(pid, name)
      } catch {}
    }
  }
  signal('SIGTERM')
  const patience = setTimeout(() => signal('SIGKILL'), 2000)
  await exited
  clearTimeout(patience)
  signal('SIGKILL')
}

/** Starts one of the scripts here; it prints one line of JSON once it listens. */
export async function startScript<Line>(name: string, args: readonly string[], core?: number, nodeArgs: readonly string[] = []) {
  const started = startProcess(process.execPath, [...process.execArgv, ...nodeArgs, here(name), ...args], {}, core)
  const lines = createInterface({ input: started.child.stdout! })
  const line = await Promise.race([
    once(lines, 'line').then(([text]) => text as string),
    once(started.child, 'exit').then(() => Promise.reject(new Error(`${name} ended before it listened: ${started.errors()}`))),
  ])
  return { ...started, pid: started.child.pid!, lines, line: JSON.parse(line) as Line }
}

async function answersOn(port: number, path: string, seconds: number, failed: () => string): Promise<void> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    try {
      const { body } = await request(`http://127.0.0.1:${port}${path}`)
      await body.dump()
      return
    } catch (cause) {
      if (Date.now() > deadline) throw new Error(`Nothing answers on port ${port} after ${seconds} s: ${failed()}`, { cause })
      await sleep(100)
    }
  }
}

const chatPath = '/v1/chat/completions'

export async function startRelay({ upstreamPort, connections }: StartOptions): Promise<RunningGateway> {
  const started = await startScript<{ port: number }>('relay.ts', [`http://127.0.0.1:${upstreamPort}`, String(connections)], gatewayCore)
  return { ...started, port: started.line.port, paths: [chatPath], headers: {} }
}

/** Debian's haproxy; throws where it is not installed. */
export async function startHaproxy({ upstreamPort }: StartOptions): Promise<RunningGateway> {
  const port = await freePort()
  const env = { BENCH_PORT: String(port), BENCH_UPSTREAM: String(upstreamPort) }
  const started = startProcess('haproxy', ['-db', '-f', here('haproxy.cfg')], env, gatewayCore)
  await answersOn(port, '/v1/models', 10, started.errors)
  return { ...started, pid: started.child.pid!, port, paths: [chatPath], headers: {} }
}

async function installPortkey(): Promise<string> {
  const directory = join(cache, `portkey-${portkeyVersion}`)
  const script = join(directory, 'node_modules/@portkey-ai/gateway/build/start-server.js')
  if (existsSync(script)) return script
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'package.json'), '{"private":true}\n')
  const args = ['install', '--ignore-scripts', '--no-fund', '--no-audit', `@portkey-ai/gateway@${portkeyVersion}`]
  const child = spawn('npm', args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`npm could not install Portkey's gateway (exit code ${code}).`)
  return script
}

/** Portkey's gateway from npm, in production mode and without its console. */
export async function startPortkey({ upstreamPort }: StartOptions): Promise<RunningGateway> {
  const script = await installPortkey()
  const port = await freePort()
  const env = { NODE_ENV: 'production', NODE_OPTIONS: '', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' }
  const args = ['--import', here('portkey-headers.mjs'), script, `--port=${port}`, '--headless']
  const started = startProcess(process.execPath, args, env, gatewayCore)
  await answersOn(port, '/', 30, started.errors)
  const headers = {
    authorization: 'Bearer bench',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
  }
  return { ...started, pid: started.child.pid!, port, paths: [chatPath], headers }
}

/** LiteLLM's proxy from PyPI with what its page on production asks for: https://docs.litellm.ai/docs/proxy/prod */
export async function startLitellm({ upstreamPort }: StartOptions): Promise<RunningGateway> {
  const python = await pythonEnvironment({
    name: 'litellm',
    requirements: here('litellm-requirements.txt'),
    overrides: here('litellm-overrides.txt'),
  })
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'bench-litellm-'))
  const config = {
    model_list: [
      { model_name: 'bench', litellm_params: { model: 'openai/bench', api_base: `http://127.0.0.1:${upstreamPort}/v1`, api_key: 'bench' } },
    ],
    litellm_settings: { set_verbose: false, json_logs: true, request_timeout: 600 },
    general_settings: { disable_spend_logs: true },
  }
  await writeFile(join(directory, 'config.yaml'), JSON.stringify(config))
  const key = `sk-${randomBytes(24).toString('hex')}`
  const env = { LITELLM_MASTER_KEY: key, LITELLM_MODE: 'PRODUCTION', LITELLM_LOG: 'ERROR', LITELLM_LOCAL_MODEL_COST_MAP: 'True' }
  const started = startProcess(
    join(python, '..', 'litellm'),
    [
      '--config',
      join(directory, 'config.yaml'),
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      '--num_workers',
      '1',
      '--telemetry',
      'False',
    ],
    env,
  )
  await answersOn(port, '/health/liveliness', 120, started.errors)
  return {
    pid: started.child.pid!,
    port,
    paths: [chatPath],
    headers: { authorization: `Bearer ${key}` },
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export interface RunningOurs extends RunningGateway {
  readonly controlPort: number
}

export interface StartOursOptions extends StartOptions {
  readonly mode: 'pass-through' | 'token-in'
  /** Sessions that are open from the start, one a client. */
  readonly sessions: number
  /** Turns that those sessions keep; all of them where absent. */
  readonly kept?: number
  /** Any core where `false`. */
  readonly pinned?: boolean
}

/** Our gateway with its recorder and a run store. */
export async function startOurs({
  upstreamPort,
  connections,
  mode,
  sessions,
  kept,
  pinned = true,
}: StartOursOptions): Promise<RunningOurs> {
  const args = [
    `--upstream=http://127.0.0.1:${upstreamPort}`,
    `--mode=${mode}`,
    `--sessions=${sessions}`,
    `--connections=${connections}`,
    ...(kept === undefined ? [] : [`--kept=${kept}`]),
  ]
  const started = await startScript<Pick<RunningOurs, 'port' | 'controlPort' | 'paths'>>(
    'ours.ts',
    args,
    pinned ? gatewayCore : undefined,
    ['--expose-gc'],
  )
  return { ...started, ...started.line, headers: {} }
}
