import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { freePort } from '../support/process-group.ts'
import { repository } from '../support/run-cli.ts'
import { docker, type TestDocker } from './docker.ts'

const startMs = 120_000
const user = 1000
/** The signing key of all containers, as a Secret has it for all pods. */
const signingKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })

interface ComposeService {
  readonly command: readonly string[]
  readonly tmpfs: readonly string[]
  readonly cap_drop: readonly string[]
  readonly security_opt: readonly string[]
  readonly secrets: readonly string[]
  readonly mem_limit: string
  readonly pids_limit: number
  readonly read_only: boolean
}

/** The service of `env/compose.yaml`, of which a container has everything but its ports: it shares the network of this machine. */
export const service: ComposeService = parse(readFileSync(join(repository, 'env/compose.yaml'), 'utf8')).services.environment

export interface ContainerOptions {
  /** Address that it shares with others. */
  readonly sharedUrl?: string
  readonly securityOptions?: readonly string[]
  readonly memory?: string
}

export interface RunningContainer extends AsyncDisposable {
  readonly name: string
  readonly port: number
  /** Address of the MCP endpoint. */
  readonly url: string
  /** Connection token. */
  readonly token: string
  /** Runs a program in the container, and resolves to its output. */
  exec(...command: readonly string[]): Promise<string>
  /** What it printed. */
  log(): Promise<string>
  /** A field of its state, such as `.State.Running`. */
  inspect(field: string): Promise<string>
}

/** Runs the environment as `env/compose.yaml` does, with a signing key and keys in files, and waits until it serves. */
export async function startContainer({ host, image }: TestDocker, options: ContainerOptions = {}): Promise<RunningContainer> {
  const { sharedUrl, securityOptions = service.security_opt, memory = service.mem_limit } = options
  const port = await freePort()
  const name = `environment-${randomUUID().slice(0, 8)}`
  const folder = mkdtempSync(join(tmpdir(), 'aworld-train-secrets-'))
  chmodSync(folder, 0o755)
  const secrets: Readonly<Record<string, string | Buffer>> = { 'signing-key': signingKey, keys: 'CONTACT=https://example.com\n' }
  for (const [secret, text] of Object.entries(secrets)) {
    writeFileSync(join(folder, secret), text, { mode: 0o600 })
    chownSync(join(folder, secret), user, user)
  }
  const own = { '--host': '127.0.0.1', '--public-url': `http://127.0.0.1:${port}/mcp` }
  const command = [...service.command.filter((each) => !(each.split('=')[0]! in own) && each !== '--insecure')]
  const dispose = async () => {
    await docker(host, 'rm', '--force', name).catch(() => {})
    rmSync(folder, { recursive: true, force: true })
  }
  const exec = (...words: readonly string[]) => docker(host, 'exec', name, ...words)
  const log = () => docker(host, 'logs', name)
  const inspect = (field: string) => docker(host, 'inspect', '--format', `{{${field}}}`, name)
  try {
    await docker(
      host,
      ...['run', '--detach', '--name', name, '--network', 'host', '--user', `${user}:${user}`],
      ...['--memory', memory, '--pids-limit', String(service.pids_limit), ...(service.read_only ? ['--read-only'] : [])],
      ...service.tmpfs.flatMap((mount) => ['--tmpfs', mount]),
      ...service.cap_drop.flatMap((capability) => ['--cap-drop', capability]),
      ...securityOptions.flatMap((option) => ['--security-opt', option.replace(/^seccomp=/, `seccomp=${join(repository, 'env')}/`)]),
      ...service.secrets.flatMap((secret) => ['--volume', `${join(folder, secret)}:/run/secrets/${secret}:ro`]),
      ...[image, ...command, ...Object.entries(own).map(([flag, value]) => `${flag}=${value}`), `--port=${port}`],
      ...(sharedUrl === undefined ? [] : [`--shared-url=${sharedUrl}`]),
    )
    const deadline = Date.now() + startMs
    while (!(await log()).includes('Start mcp server success.')) {
      if ((await inspect('.State.Running')) !== 'true' || Date.now() > deadline) throw new Error(`It did not start:\n${await log()}`)
      await sleep(250)
    }
    const token = await exec('aworld-train', 'env', 'token', '--signing-key', '/run/secrets/signing-key')
    return { name, port, url: own['--public-url'], token, exec, log, inspect, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}
