import { rm } from 'node:fs/promises'
import type { Environment, EnvironmentLease, LeaseRequest, Tools } from '@aworld-train/core'
import { TrainError } from '@aworld-train/protocol'
import { suggestion } from './closest-name.ts'
import { type EnvironmentOptions, resolveOptions } from './environment-options.ts'
import { type NamedTool, nameTools } from './name-tools.ts'
import { type SelectedServer, selectServers } from './select-servers.ts'
import type { StdioDefinition } from './server-definition.ts'
import { allOrNone, createServerPool, type ServerKit } from './server-pool.ts'
import { ownSlot, type ServerSlot, sharedSlot } from './server-slot.ts'

/**
 * An environment of MCP servers: one lease a rollout, each with its own directory and connections and, for a stdio server
 * that is not stateless, a fresh process. Leases reject with CONFIG_INVALID, ENVIRONMENT_START_FAILED or ENVIRONMENT_TOOLS_CHANGED.
 */
export function createEnvironment(environmentOptions: EnvironmentOptions = {}): Environment {
  const options = resolveOptions(environmentOptions)
  const pool = createServerPool(options)
  const leases = new Set<EnvironmentLease>()
  let closed: Promise<void> | null = null

  const openSlots = async (selected: readonly SelectedServer[], request: LeaseRequest, lease: LeaseDirectory, signal: AbortSignal) => {
    const own = selected.flatMap(({ definition }) => (definition.stateless ? [] : [definition]))
    const processes = own.filter((definition): definition is StdioDefinition => definition.kind === 'stdio')
    let kit: Promise<ServerKit> | undefined
    const takeKit = (together: AbortSignal) => {
      kit ??= pool.takeKit(processes, together).then((taken) => {
        lease.path = taken.directory
        return taken
      })
      return kit
    }
    // Ours to key remote state by; AWorld's servers read it too.
    const identity = { SESSION_ID: encodeURIComponent(`${request.rollout}.${request.attempt}.${request.agent}`) }
    const openSlot = async ({ definition }: SelectedServer, together: AbortSignal): Promise<ServerSlot> => {
      if (definition.stateless) return sharedSlot(pool, definition, together)
      const place = () => ({ directory: definition.kind === 'stdio' ? lease.get() : options.baseDirectory, identity })
      const reopen = (reopenSignal: AbortSignal) => pool.open(definition, place(), reopenSignal)
      const ready = definition.kind === 'stdio' ? (await takeKit(together)).connections.get(definition.identity) : undefined
      const first = ready ?? (await reopen(together))
      return ownSlot(pool, first, reopen, options.graceMs)
    }
    const starts = selected.map((server) => (together: AbortSignal) => openSlot(server, together))
    return await allOrNone(starts, (slot) => slot.close(), signal)
  }

  return {
    async lease(request, signal) {
      signal.throwIfAborted()
      if (closed) throw closedError()
      const selected = selectServers(request, options)
      const directory = new LeaseDirectory(() => pool.makeDirectory())
      const close = async (slots: readonly ServerSlot[]) => {
        await Promise.all(slots.map((slot) => slot.close()))
        if (directory.path) await rm(directory.path, { recursive: true, force: true, maxRetries: 3 })
      }
      let slots: ServerSlot[] = []
      try {
        slots = await openSlots(selected, request, directory, signal)
        if (closed) throw closedError()
        const named = nameTools(
          selected.map(({ definition, hidden }, index) => ({ server: definition.name, tools: slots[index]!.connection.tools, hidden })),
        )
        let closing: Promise<void> | null = null
        const lease: EnvironmentLease = {
          tools: leaseTools(named, slots, pool.counter, () => closing !== null),
          get directory() {
            return directory.get()
          },
          close() {
            leases.delete(lease)
            closing ??= close(slots)
            return closing
          },
        }
        leases.add(lease)
        return lease
      } catch (error) {
        await close(slots)
        throw error
      }
    },
    counts: () => pool.counter.read(pool.live()),
    close() {
      closed ??= Promise.all([...leases].map((lease) => lease.close())).then(() => pool.close())
      return closed
    },
  }
}

const closedError = () => new TrainError('ENVIRONMENT_START_FAILED', 'The environment is closed; create another one.')

/** The directory of a lease, made when it is first asked for. */
class LeaseDirectory {
  path: string | null = null
  readonly #make: () => string
  constructor(make: () => string) {
    this.#make = make
  }
  get(): string {
    this.path ??= this.#make()
    return this.path
  }
}

function leaseTools(
  named: ReadonlyMap<string, NamedTool>,
  slots: readonly ServerSlot[],
  counter: { toolCalls: number; toolErrors: number },
  isClosed: () => boolean,
): Tools {
  const definitions = [...named.values()].map(({ definition }) => definition)
  return {
    list: async () => definitions,
    async call({ name, arguments: input }, signal) {
      signal.throwIfAborted()
      if (isClosed()) throw new TrainError('TOOL_SERVER_DIED', `The tool "${name}" was called after its lease was closed.`)
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
