import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type McpServerConfig, suggest, TrainError } from '@aworld-train/core'
import type { ResolvedOptions } from './environment-options.ts'

interface CommonDefinition {
  readonly name: string
  readonly callTimeoutMs: number
  /** Deadline for starting it and listing its tools. */
  readonly startTimeoutMs: number
  /** Whether one process or connection may serve several rollouts. */
  readonly stateless: boolean
  /** Equal for servers that are started in the same way. */
  readonly identity: string
}

/** A server that is a child process of ours. */
export interface StdioDefinition extends CommonDefinition {
  readonly kind: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Working directory; `null` for the directory of the lease. */
  readonly cwd: string | null
  /** Set if it runs in a jail: paths that it reads there besides its own program. */
  readonly jail: { readonly readable: readonly string[] } | null
}

/** A server that already runs at an address. */
export interface HttpDefinition extends CommonDefinition {
  readonly kind: 'streamable-http' | 'sse'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Whether its leases have desktops. */
  readonly desktop: boolean
  /** Whether commands in its workspaces are to reach the public web. */
  readonly net: boolean
}

/** One MCP server of a configuration, checked, with its variables filled in and its paths absolute. */
export type ServerDefinition = StdioDefinition | HttpDefinition

const knownKeys = [
  'type',
  'command',
  'args',
  'env',
  'cwd',
  'url',
  'headers',
  'disabled',
  'timeout',
  'sse_read_timeout',
  'client_session_timeout_seconds',
  'stateless',
  'sandbox',
  'desktop',
  'net',
]
/** Paths at which a jail has files of its own. */
const ownOfJails = ['/', '/dev', '/proc', '/tmp']
const kinds: Readonly<Record<string, ServerDefinition['kind']>> = {
  stdio: 'stdio',
  'streamable-http': 'streamable-http',
  streamable_http: 'streamable-http',
  streamableHttp: 'streamable-http',
  http: 'streamable-http',
  sse: 'sse',
}

/**
 * Reads one entry of `mcpServers`. Throws CONFIG_INVALID that names the server, the key and the remedy. Keys that are near misses of known
 * ones are refused; others are ignored.
 */
export function toServerDefinition(name: string, config: McpServerConfig, options: ResolvedOptions): ServerDefinition {
  const fail = (problem: string): never => {
    throw new TrainError('CONFIG_INVALID', `MCP server "${name}": ${problem}`, { details: { server: name } })
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config)) fail('its configuration is not an object.')
  for (const key of Object.keys(config)) {
    if (knownKeys.includes(key)) continue
    const near = suggest(key, knownKeys)
    if (near) fail(`unknown key "${key}"; did you mean "${near}"?`)
  }
  const substitute = (value: unknown, key: string): string => {
    if (typeof value !== 'string') return fail(`"${key}" must be a string.`)
    return value.replace(/\$\{([A-Za-z_]\w*)\}/g, (_, variable: string) => {
      return options.variables[variable] ?? fail(`"${key}" uses the environment variable ${variable}, which is not set.`)
    })
  }
  const substituteAll = (values: unknown, key: string): Record<string, string> => {
    if (values === undefined) return {}
    if (typeof values !== 'object' || values === null || Array.isArray(values)) return fail(`"${key}" must be an object of strings.`)
    return Object.fromEntries(Object.entries(values).map(([entry, value]) => [entry, substitute(value, `${key}.${entry}`)]))
  }
  const toJail = (sandbox: unknown): StdioDefinition['jail'] => {
    if (sandbox === undefined || sandbox === false) return null
    if (sandbox === true) return { readable: [] }
    const { read = [], ...others } = typeof sandbox === 'object' && sandbox !== null ? (sandbox as Record<string, unknown>) : { read: null }
    if (!Array.isArray(read) || Object.keys(others).length > 0) {
      return fail('"sandbox" must be true, false, or { "read": [paths] } for files and folders that the server reads.')
    }
    const readable = read.map((value, index) => resolve(options.baseDirectory, substitute(value, `sandbox.read.${index}`)))
    for (const path of readable) {
      if (ownOfJails.includes(path))
        fail(`"sandbox.read" names ${path}, which is no path that a jail can show whole; name folders below it.`)
      if (!existsSync(path)) fail(`"sandbox.read" names ${path}, where nothing is.`)
    }
    return { readable }
  }
  const type = config.type ?? (config.url === undefined ? 'stdio' : 'streamable-http')
  const kind = kinds[type] ?? fail(`type "${type}" is not known; use "stdio", "streamable-http" or "sse".`)
  const seconds = config.timeout ?? config.client_session_timeout_seconds ?? config.sse_read_timeout
  if (seconds !== undefined && !(typeof seconds === 'number' && seconds > 0 && Number.isFinite(seconds))) {
    fail('"timeout" must be a positive number of seconds.')
  }
  const { desktop = false } = config
  if (typeof desktop !== 'boolean') fail('"desktop" must be true or false.')
  const common = {
    name,
    callTimeoutMs: seconds === undefined ? options.callTimeoutMs : seconds * 1000,
    // A short deadline is meant only for calls. A long one shows that the server is slow, so its start may take as long.
    startTimeoutMs: Math.max(options.startTimeoutMs, (seconds ?? 0) * 1000),
    stateless: config.stateless === true,
  }
  const { net = false } = config
  if (typeof net !== 'boolean') fail('"net" must be true or false.')
  if (kind === 'stdio') {
    if (desktop) fail('"desktop" is for environment servers, which have a "url"; remove it.')
    if (net) fail('"net" is for environment servers, which have a "url"; remove it.')
    if (config.command === undefined) fail('it has neither "command" nor "url"; add one of them.')
    if (config.args !== undefined && !Array.isArray(config.args)) fail('"args" must be a list of strings.')
    const program = {
      kind,
      command: resolveCommand(substitute(config.command, 'command'), options.baseDirectory),
      args: (config.args ?? []).map((value, index) => resolveArgument(substitute(value, `args.${index}`), options.baseDirectory)),
      env: substituteAll(config.env, 'env'),
      cwd: config.cwd === undefined ? null : resolve(options.baseDirectory, substitute(config.cwd, 'cwd')),
      jail: toJail(config.sandbox),
    }
    if (program.jail && program.cwd !== null) fail('a server with "sandbox" works in the directory of its rollout; remove "cwd".')
    return { ...common, ...program, identity: JSON.stringify([name, program, common]) }
  }
  if (config.sandbox) fail('"sandbox" is for servers that are started by a "command"; remove it.')
  if (config.url === undefined) fail(`type "${type}" needs a "url".`)
  const text = substitute(config.url, 'url')
  const url = URL.canParse(text) ? new URL(text) : fail(`"url" is not an address: ${text}`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') fail(`"url" must begin with http:// or https://, not ${url.protocol}`)
  const headers = substituteAll(config.headers, 'headers')
  return { ...common, kind, url, headers, desktop, net, identity: JSON.stringify([name, kind, url.href, headers, desktop, net, common]) }
}

/**
 * `node` is the Node that runs this process, so that a server needs nothing on the PATH. A relative path is relative to the base directory.
 */
function resolveCommand(command: string, baseDirectory: string): string {
  if (command === 'node') return process.execPath
  return /[/\\]/.test(command) ? resolve(baseDirectory, command) : command
}

/** Servers run in a directory of their own. An argument that names a file beside the configuration therefore becomes absolute. */
function resolveArgument(argument: string, baseDirectory: string): string {
  if (/^\.\.?[/\\]/.test(argument)) return resolve(baseDirectory, argument)
  if (argument === '' || argument.startsWith('-')) return argument
  const path = resolve(baseDirectory, argument)
  // An argument may be a whole program, which is too long for a path.
  return existsSync(path) && statSync(path).isFile() ? path : argument
}
