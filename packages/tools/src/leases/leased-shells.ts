import { type Shell, ToolError, type Workspace } from '@aworld-train/core'

/** Most shells of one lease. Each is a process, or a part of one. */
const maxShells = 64

/** Longest time of the script that a shell begins with. */
const beginMs = 10_000

/** The shells of a lease by session, which is one agent's run. Each is opened at its first use. */
export interface LeasedShells {
  open(session: string): Promise<Shell>
  /** Those that are open. */
  all(): Promise<ReadonlyMap<string, Shell>>
  /** Has each shell begin with a script, if `scriptOf` has one for its session. */
  beginWith(scriptOf: (session: string) => string | null): void
  forget(): void
}

export function createLeasedShells(
  workspace: () => Promise<Workspace>,
  signal: AbortSignal,
  onError: (error: Error) => void,
): LeasedShells {
  const shells = new Map<string, Promise<Shell>>()
  let scriptOf: (session: string) => string | null = () => null

  async function openShell(session: string): Promise<Shell> {
    const shell = await (await workspace()).shell(signal)
    const script = scriptOf(session)
    if (script === null) return shell
    try {
      await shell.execute(script, beginMs, signal)
      return shell
    } catch (error) {
      await shell.close().catch(onError)
      throw error
    }
  }

  return {
    open(session) {
      if (!shells.has(session) && shells.size >= maxShells)
        return Promise.reject(new ToolError(`${maxShells} shells are open in this workspace already; go on in one of them.`))
      const open = shells.get(session) ?? openShell(session)
      shells.set(session, open)
      open.catch(() => shells.delete(session))
      return open
    },
    async all() {
      return new Map(await Promise.all(Array.from(shells, async ([session, shell]) => [session, await shell] as const)))
    },
    beginWith(next) {
      scriptOf = next
    },
    forget: () => shells.clear(),
  }
}
