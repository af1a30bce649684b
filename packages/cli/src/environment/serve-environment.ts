import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { LeaseQuota, SandboxTier } from '@aworld-train/core'
import type { EnvironmentConnection } from '@aworld-train/environment'
import { type OutwardCassette, openOutward } from '@aworld-train/http'
import {
  browserFolders,
  type EnvironmentServer,
  modelRoles,
  modelServices,
  modelSettings,
  openEnvironmentServer,
  outwardSettings,
  readSettings,
  toolServers,
} from '@aworld-train/tools'
import { openParserJail, openSandbox } from '@aworld-train/tools/sandbox'
import { type EnvironmentFiles, makeEnvironmentFolder, removeConnection, writeConnection } from './environment-files.ts'
import { loadProjectServers } from './project-servers.ts'

/** Longest error in the log, in characters. */
const longestReport = 10_000

export interface ServeEnvironmentOptions {
  readonly files: EnvironmentFiles
  readonly host: string
  readonly port: number
  /** Port of the page that shows desktops. */
  readonly desktopPort: number
  readonly insecure: boolean
  /** Address at which agents reach this server. Default: the one that it listens at. */
  readonly publicUrl?: string | undefined
  /** Address of several servers with the same key, for connections. Default: `publicUrl`. */
  readonly sharedUrl?: string | undefined
  /** File with the key for signing tokens. Default: that of `files`. */
  readonly keyFile?: string | undefined
  readonly maxLeases?: number | undefined
  /** Browsers that wait for the next leases. */
  readonly readyBrowsers?: number | undefined
  /** Lifetime of the connection token. */
  readonly connectionTtlMs: number
  readonly tier: SandboxTier | 'auto'
  /** Upper bound of the quota of a lease. */
  readonly maxQuota: LeaseQuota
  /** Whether leases may open the web to their commands. */
  readonly mayOpenNet: boolean
  /** File with keys. Default: `.env` if it exists. */
  readonly keys?: string | undefined
  readonly cassette?: OutwardCassette | undefined
}

export interface ServedEnvironment {
  readonly connection: EnvironmentConnection
  readonly server: EnvironmentServer
  /** Notices for people about the keys, the sandbox and the missing parts of each server. */
  readonly notices: readonly string[]
  close(): Promise<void>
}

/** Wires sandbox, outward calls and tool servers, and writes the connection for the agents of the project. */
export async function serveEnvironment(options: ServeEnvironmentOptions): Promise<ServedEnvironment> {
  const { files, keys, tier, cassette, keyFile = files.key, ...listening } = options
  await using stack = new AsyncDisposableStack()
  const file = keys === undefined ? (existsSync('.env') ? resolve('.env') : null) : resolve(keys)
  const settings = readSettings({ file, variables: process.env })
  const servers = [...toolServers, ...(await loadProjectServers('.'))]
  makeEnvironmentFolder(files)
  const { services, web } = outwardSettings(settings.values)
  const world = { services: [...services, ...modelServices(settings.values)], web, cassette }
  const outward = stack.adopt(await openOutward(world), (each) => each.close())
  const sandbox = stack.adopt(await openSandbox({ tier, readable: browserFolders() }), (each) => each.close())
  const parsers = stack.adopt(await openParserJail(), (each) => each.close())
  const models = Object.fromEntries(
    modelRoles.flatMap((role) => {
      const model = modelSettings(settings.values, role)
      return model ? [[role, model]] : []
    }),
  )
  const browserUrl = settings.values.get('BROWSER_CDP_URL')
  const notices = [...settings.notices, ...parsers.notices]
  const onError = (error: Error) => void process.stderr.write(`${(error.stack ?? error.message).slice(0, longestReport)}\n`)
  const server = stack.adopt(
    await openEnvironmentServer({
      ...listening,
      servers,
      sandbox,
      parsers,
      outward,
      models,
      browserUrl,
      keyFile,
      notices,
      onError,
    }),
    (each) => each.close(),
  )
  const { contain } = server
  process.on('uncaughtException', contain).on('unhandledRejection', contain)
  stack.defer(() => void process.off('uncaughtException', contain).off('unhandledRejection', contain))
  const url = options.sharedUrl ?? server.url
  const local = url === server.localUrl ? {} : { localUrl: server.localUrl }
  const connection = { version: 1, url, ...local, token: server.connectionToken, pid: process.pid } as const
  writeConnection(files, connection)
  stack.defer(() => removeConnection(files))
  const status = server.status()
  const missing = status.servers.flatMap(({ name, missing }) => missing.map((remedy) => `${name}: ${remedy}`))
  const closing = stack.move()
  return {
    connection,
    server,
    notices: [...status.notices, ...missing],
    close: () => closing.disposeAsync(),
  }
}
