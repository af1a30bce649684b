import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type LeasedSandbox, makeOwnFolder, orAborted, type ProgramJail, TrainError } from '@aworld-train/core'
import { type CallCounter, createCallCounter } from './call-counter.ts'
import type { ResolvedOptions } from './environment-options.ts'
import { createProcessGuard } from './process-guard.ts'
import { type ConnectionContext, type ConnectionPlace, openConnection, type ServerConnection } from './server-connection.ts'
import type { ServerDefinition, StdioDefinition } from './server-definition.ts'

/** A directory, with a fresh process for each stdio server that one rollout has for itself. */
export interface ServerKit {
  readonly directory: string
  readonly connections: ReadonlyMap<string, ServerConnection>
}

/** All servers of an environment: shared ones, those of leases, and those that wait for a lease. */
export interface ServerPool {
  readonly counter: CallCounter
  /** Returns the one connection to a stateless server, which is started again when it is gone. */
  shared(definition: ServerDefinition, signal: AbortSignal): Promise<ServerConnection>
  /** Returns a fresh kit, a warm one if there is one, and starts the next. */
  takeKit(definitions: readonly StdioDefinition[], signal: AbortSignal): Promise<ServerKit>
  open(definition: ServerDefinition, place: ConnectionPlace, signal: AbortSignal): Promise<ServerConnection>
  /** Reads the server's count and closes it. */
  retire(connection: ServerConnection): Promise<void>
  /** Ends a server that hangs or is dead. It counts as lost once. */
  discard(connection: ServerConnection): Promise<void>
  makeDirectory(): string
  live(): Iterable<ServerConnection>
  close(): Promise<void>
}

/** Creates a pool that starts nothing before it is asked. `close` ends everything it started and removes its directories. */
export function createServerPool(options: ResolvedOptions, onSandbox: (sandbox: LeasedSandbox) => void): ServerPool {
  const guard = createProcessGuard()
  const root = makeOwnFolder('aworld-train-environment-')
  guard.addDirectory(root)
  let jail: Promise<ProgramJail> | null = null
  const context: ConnectionContext = {
    options,
    guard,
    eras: new Map(),
    async jail({ name }) {
      jail ??= openJail(options, root)
      const opened = await jail.catch((cause: Error) => {
        const message = `MCP server "${name}": "sandbox" cannot be had here: ${cause.message} Or remove "sandbox".`
        throw new TrainError('CONFIG_INVALID', message, { cause, details: { server: name } })
      })
      onSandbox({ url: `stdio:${name}`, tier: 'bubblewrap', notices: opened.notices })
      return opened
    },
  }
  const counter = createCallCounter()
  const connections = new Set<ServerConnection>()
  const discarded = new WeakSet<ServerConnection>()
  const firstTools = new Map<string, string>()
  const sharedConnections = new Map<string, Promise<ServerConnection>>()
  const warmKits = new Map<string, Promise<ServerKit>[]>()
  const closing = new AbortController()

  const opening = new Set<Promise<ServerConnection>>()
  const open: ServerPool['open'] = (definition, place, signal) => {
    const promise = openChecked(definition, place, signal)
    opening.add(promise)
    const done = () => void opening.delete(promise)
    promise.then(done, done)
    return promise
  }
  const openChecked: ServerPool['open'] = async (definition, place, signal) => {
    closing.signal.throwIfAborted()
    const connection = await openConnection(definition, place, context, AbortSignal.any([signal, closing.signal]))
    if (definition.kind === 'stdio') counter.serversStarted++
    connections.add(connection)
    const tools = JSON.stringify(connection.tools)
    const first = firstTools.get(definition.identity) ?? tools
    firstTools.set(definition.identity, first)
    if (tools !== first) {
      await retire(connection)
      throw toolsChangedError(definition.name)
    }
    return connection
  }
  const retire = async (connection: ServerConnection) => {
    if (!connections.delete(connection)) return
    await counter.settle(connection, connection.alive)
    await connection.close()
  }
  const discard = async (connection: ServerConnection) => {
    if (discarded.has(connection)) return
    discarded.add(connection)
    counter.serversLost++
    if (connections.delete(connection)) await counter.settle(connection, false)
    await connection.kill()
  }
  const startKit = async (definitions: readonly StdioDefinition[], signal: AbortSignal): Promise<ServerKit> => {
    const directory = await mkdtemp(join(root, 'lease-'))
    const starts = definitions.map((definition) => (together: AbortSignal) => open(definition, { directory, identity: {} }, together))
    try {
      const started = await allOrNone(starts, retire, signal)
      return { directory, connections: new Map(started.map((connection) => [connection.definition.identity, connection])) }
    } catch (error) {
      await rm(directory, { recursive: true, force: true })
      throw error
    }
  }
  const dropKit = async (kit: ServerKit) => {
    await Promise.all([...kit.connections.values()].map(retire))
    await rm(kit.directory, { recursive: true, force: true })
  }

  return {
    counter,
    open,
    retire,
    discard,
    async shared(definition, signal) {
      const { identity } = definition
      const current = sharedConnections.get(identity)
      const connection = current && (await orAborted(current, signal))
      if (connection?.alive) return connection
      if (sharedConnections.get(identity) !== current) return this.shared(definition, signal)
      if (connection) void discard(connection)
      const directory = options.baseDirectory
      const started = open(definition, { directory, identity: {} }, closing.signal)
      sharedConnections.set(identity, started)
      started.catch(() => {
        if (sharedConnections.get(identity) === started) sharedConnections.delete(identity)
      })
      return orAborted(started, signal)
    },
    async takeKit(definitions, signal) {
      const key = definitions.map((definition) => definition.identity).join('\n')
      const warm = warmKits.get(key) ?? []
      warmKits.set(key, warm)
      const ready = warm.shift()
      const refill = () => {
        while (warm.length < options.warmProcesses && !closing.signal.aborted) {
          const kit = startKit(definitions, closing.signal)
          kit.catch(() => {})
          warm.push(kit)
        }
      }
      const usable = ready && (await orAborted(ready, signal).catch(() => null))
      if (usable && [...usable.connections.values()].every((connection) => connection.alive)) {
        refill()
        return usable
      }
      if (ready) void ready.then(dropKit, () => {})
      signal.throwIfAborted()
      const kit = await startKit(definitions, signal)
      refill()
      return kit
    },
    makeDirectory: () => mkdtempSync(join(root, 'lease-')),
    live: () => connections,
    async close() {
      closing.abort(new TrainError('ENVIRONMENT_START_FAILED', 'The environment is closed; create another one.'))
      await Promise.allSettled([...opening, ...[...warmKits.values()].flat()])
      await Promise.all([...connections].map(retire))
      await jail?.then((each) => each.close()).catch(() => {})
      rmSync(root, { recursive: true, force: true, maxRetries: 3 })
      guard.close()
    },
  }
}

async function openJail({ openProgramJail }: ResolvedOptions, root: string): Promise<ProgramJail> {
  if (!openProgramJail) throw new Error('this environment was created without a jail; give it "openProgramJail".')
  const jail = await openProgramJail()
  // If this process is root, jails run as other users. They pass through here to the directory of their lease and see no others.
  chmodSync(root, 0o711)
  return jail
}

/**
 * Resolves to the results of all `starts`. The first failure aborts the others at once and is the rejection;
 * starts that succeeded are undone.
 */
export async function allOrNone<Started>(
  starts: readonly ((signal: AbortSignal) => Promise<Started>)[],
  undo: (started: Started) => Promise<void>,
  signal: AbortSignal,
): Promise<Started[]> {
  const failure = new AbortController()
  const together = AbortSignal.any([signal, failure.signal])
  const settled = await Promise.allSettled(
    starts.map((start) =>
      start(together).catch((error: unknown) => {
        failure.abort(error)
        throw error
      }),
    ),
  )
  const started = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (started.length === starts.length) return started
  await Promise.all(started.map(undo))
  throw failure.signal.reason
}

/** The error that stops a run when a server no longer offers the same tools. */
export function toolsChangedError(server: string): TrainError {
  const message = `The MCP server "${server}" changed its list of tools during the run; keep it constant, or start a new run.`
  return new TrainError('ENVIRONMENT_TOOLS_CHANGED', message, { details: { server } })
}
