import { rm } from 'node:fs/promises'
import {
  checkCollectLimits,
  type EnvironmentLease,
  filesRefused,
  type LeasedSandbox,
  type LeaseRequest,
  type Tools,
  TrainError,
  type WorkspaceFile,
} from '@aworld-train/core'
import { collectFolder } from './collect-folder.ts'
import type { ResolvedOptions } from './environment-options.ts'
import { type NamedTool, nameTools } from './name-tools.ts'
import { prepareWorkspace } from './prepare-workspace.ts'
import { openRemoteLease, type RemoteLease } from './remote-lease.ts'
import { type SelectedServer, selectServers } from './select-servers.ts'
import type { HttpDefinition, ServerDefinition, StdioDefinition } from './server-definition.ts'
import { allOrNone, type ServerKit, type ServerPool } from './server-pool.ts'
import { ownSlot, type ServerSlot, sharedSlot } from './server-slot.ts'
import { suggestion } from './suggestion.ts'

export interface RolloutLeaseOptions {
  readonly request: LeaseRequest
  /** Distinguishes rollouts of this environment from equally named ones of another run on the same environment server. */
  readonly run: string
  readonly pool: ServerPool
  readonly options: ResolvedOptions
  /** Called once, when the lease closes. */
  readonly onClose: () => void
  readonly onSandbox: (sandbox: LeasedSandbox) => void
}

/** Opens a lease: a directory, and one process for each distinct stdio server that its agents configure. */
export function openRolloutLease({ request, run, pool, options, onClose, onSandbox }: RolloutLeaseOptions): EnvironmentLease {
  let directory: string | null = null
  /** Slots by the server's identity. For a server over HTTP they are by agent too, because its requests name the agent. */
  const slots = new Map<string, ServerSlot>()
  let prepared: Promise<void> | null = null
  let closing: Promise<void> | null = null
  /** Agents that ask at the same time are served one after the other, so that the second finds what the first started. */
  let queue: Promise<unknown> = Promise.resolve()
  const closed = new AbortController()
  const lost = new AbortController()

  const makeDirectory = () => {
    directory ??= pool.makeDirectory()
    return directory
  }
  /** Leases on environment servers by address, with the entry that asked first; `null` for a server that leases nothing. */
  const remotes = new Map<string, { readonly first: HttpDefinition; readonly lease: Promise<RemoteLease | null> }>()
  const leaseRemotely = (definition: ServerDefinition, signal: AbortSignal): Promise<RemoteLease | null> => {
    // Only a server that mounts others by this header can be an environment server.
    if (definition.kind !== 'streamable-http') return Promise.resolve(null)
    const { desktop, net, url } = definition
    if (!(desktop || net || hasHeader(definition, 'MCP_SERVERS'))) return Promise.resolve(null)
    const open = async () => {
      const lease = await openRemoteLease(definition, { ...request, rollout: `${run}.${request.rollout}` }, options.baseDirectory, signal)
      if (lease) onSandbox(lease.sandbox)
      return lease
    }
    const remote = remotes.get(url.href) ?? { first: definition, lease: open() }
    remotes.set(url.href, remote)
    const { first } = remote
    if (first.desktop === desktop && first.net === net) return remote.lease
    const names = `"${first.name}" and "${definition.name}"`
    const message = `The MCP servers ${names} of one rollout are at ${url.href}, which leases it one workspace; give both the same "desktop" and "net".`
    return Promise.reject(new TrainError('CONFIG_INVALID', message))
  }
  const openAlone = async (definition: ServerDefinition, agent: string, signal: AbortSignal) => {
    const remote = await leaseRemotely(definition, signal)
    const place = {
      authorization: remote?.authorization,
      directory: definition.kind === 'stdio' ? makeDirectory() : options.baseDirectory,
      // Remote servers keep their state under this id, which AWorld's servers read too.
      identity: { SESSION_ID: encodeURIComponent(`${request.rollout}.${request.attempt}.${agent}`) },
    }
    return await pool.open(remote && definition.kind !== 'stdio' ? { ...definition, url: remote.url } : definition, place, signal)
  }
  const slotKey = ({ kind, identity }: ServerDefinition, agent: string) => (kind === 'stdio' ? identity : `${identity}\n${agent}`)

  async function openSlots(selected: readonly SelectedServer[], agent: string, signal: AbortSignal): Promise<ServerSlot[]> {
    const missing = new Map(
      selected.flatMap(({ definition }) => {
        const key = slotKey(definition, agent)
        return slots.has(key) ? [] : [[key, definition] as const]
      }),
    )
    const processes = [...missing.values()].filter(
      (definition) => definition.kind === 'stdio' && !definition.stateless,
    ) as StdioDefinition[]
    const isFirst = directory === null
    let kit: Promise<ServerKit> | undefined
    /** The processes of the first agent may be warm. Those that another agent adds are started in the same directory. */
    const takeKit = (together: AbortSignal) => {
      kit ??= pool.takeKit(processes, together).then((ready) => {
        directory = ready.directory
        return ready
      })
      return kit
    }
    const openSlot = async (key: string, definition: ServerDefinition, together: AbortSignal): Promise<void> => {
      const connect = async () => {
        const ready = isFirst && definition.kind === 'stdio' ? (await takeKit(together)).connections.get(definition.identity) : undefined
        return ready ?? (await openAlone(definition, agent, together))
      }
      const slot = definition.stateless
        ? await sharedSlot(pool, definition, together)
        : ownSlot(pool, await connect(), (error) => lost.abort(error))
      slots.set(key, slot)
    }
    const starts = [...missing].map(
      ([key, definition]) =>
        (together: AbortSignal) =>
          openSlot(key, definition, together),
    )
    // Servers that have started end when the lease closes, as they do after every failure.
    await allOrNone(starts, async () => {}, signal)
    return selected.map(({ definition }) => slots.get(slotKey(definition, agent))!)
  }

  const open = async (selection: Parameters<EnvironmentLease['tools']>[0], signal: AbortSignal): Promise<Tools> => {
    signal.throwIfAborted()
    const selected = selectServers(selection, options)
    const inDirectory = selected.flatMap(({ definition }) => (definition.kind === 'stdio' && !definition.stateless ? [definition] : []))
    const prepare = async () => {
      if (inDirectory.length === 0) return
      prepared ??= prepareWorkspace(request.task, makeDirectory(), options, signal)
      await prepared
    }
    const { files = [], setup } = request.task
    // The workspace is prepared before jailed servers start, because a link that such a server makes in the directory could lead writes to
    // files of the machine.
    if ((files.length > 0 || setup) && inDirectory.some(({ jail }) => jail)) await prepare()
    const opened = await openSlots(selected, selection.agent, signal)
    await prepare()
    signal.throwIfAborted()
    const named = nameTools(
      selected.map(({ definition, hidden }, index) => ({ server: definition.name, tools: opened[index]!.connection.tools, hidden })),
    )
    return leaseTools(named, opened, pool.counter, lost.signal, () => closing !== null)
  }
  let servers: Promise<unknown> | null = null
  /** Ends the servers. Their files stay. */
  const endServers = () => {
    closed.abort(new TrainError('ENVIRONMENT_START_FAILED', 'The lease was closed while its servers started.'))
    servers ??= queue.then(() => Promise.all([...slots.values()].map((slot) => slot.close())))
    return servers
  }
  const collect = async (patterns: readonly string[], signal: AbortSignal) => {
    await endServers()
    lost.signal.throwIfAborted()
    const leases = (await Promise.all(Array.from(remotes.values(), ({ lease }) => lease.catch(() => null)))).filter(
      (lease) => lease !== null,
    )
    const parts = await Promise.all([
      ...(directory === null ? [] : [collectFolder(directory, patterns)]),
      ...leases.map((lease) => lease.collect(patterns, signal)),
    ])
    return joined(parts)
  }
  const close = async () => {
    await endServers()
    await Promise.all(Array.from(remotes.values(), async ({ lease }) => (await lease.catch(() => null))?.close()))
    if (directory !== null) await rm(directory, { recursive: true, force: true, maxRetries: 3 })
    onClose()
  }

  return {
    get directory() {
      return makeDirectory()
    },
    lost: lost.signal,
    tools(selection, signal) {
      const tools = queue.then(() => open(selection, AbortSignal.any([signal, closed.signal, lost.signal])))
      queue = tools.catch(() => {})
      return tools
    },
    collect: async (signal) => options.collect && (await collect(options.collect, signal)),
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** The files of several workspaces. Throws FILES_REFUSED if they are too many together, or if two have one path. */
function joined(parts: readonly (readonly WorkspaceFile[])[]): readonly WorkspaceFile[] {
  const files = parts.flat()
  const paths = files.map(({ path }) => path)
  const repeated = paths.find((path, index) => paths.indexOf(path) !== index)
  if (repeated !== undefined) throw filesRefused(`two workspaces of the rollout have a file ${JSON.stringify(repeated)}`)
  checkCollectLimits(
    files.map(({ bytes }) => ({ bytes: bytes.length })),
    'what the workspaces of the rollout have together',
  )
  return files
}

const hasHeader = ({ headers }: HttpDefinition, name: string) => Object.keys(headers).some((header) => header.toUpperCase() === name)

function leaseTools(
  named: ReadonlyMap<string, NamedTool>,
  slots: readonly ServerSlot[],
  counter: { toolCalls: number; toolErrors: number },
  lost: AbortSignal,
  isClosed: () => boolean,
): Tools {
  const definitions = [...named.values()].map(({ definition }) => definition)
  return {
    list: async () => definitions,
    async call({ name, arguments: input }, signal) {
      signal.throwIfAborted()
      if (isClosed()) throw new TrainError('TOOL_SERVER_DIED', `The tool "${name}" was called after its lease was closed.`)
      lost.throwIfAborted()
      const route = named.get(name)
      if (!route) {
        counter.toolErrors++
        return { content: `There is no tool "${name}"${suggestion(name, [...named.keys()])}`, isError: true }
      }
      counter.toolCalls++
      try {
        const result = await slots[route.owner]!.call(route.tool, input, signal)
        if (result.isError) counter.toolErrors++
        return result
      } catch (error) {
        counter.toolErrors++
        throw error
      }
    },
  }
}
