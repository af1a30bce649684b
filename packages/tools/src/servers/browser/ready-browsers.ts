import { type Sandbox, ToolError, type Workspace, type WorkspaceLimits } from '@aworld-train/core'
import type { Egress } from '../../egress/open-egress.ts'
import { createReadyWorkspaces } from '../../sandbox/ready-workspaces.ts'
import type { Browsers } from './browsers.ts'

/** A lease that opens leaves the processor to its own work for as long. */
const pauseMs = 1_000
const idleMs = 300_000

export interface ReadyBrowsersOptions {
  /** Most that wait at once. */
  readonly count: number
  readonly sandbox: Sandbox
  readonly browsers: Browsers
  readonly planEgress: (workspace: Workspace) => Promise<Egress>
}

/** Workspaces whose browsers run before there is a lease for them. Each is handed out once. */
export interface ReadyBrowsers {
  /** Takes one with these limits whose browser answers. The next ones get the same limits. */
  take(limits: Partial<WorkspaceLimits>, signal: AbortSignal): Promise<Workspace | null>
  close(): Promise<void>
}

export function createReadyBrowsers({ count, sandbox, browsers, planEgress }: ReadyBrowsersOptions): ReadyBrowsers {
  async function open(limits: Partial<WorkspaceLimits>, signal: AbortSignal) {
    const workspace = await sandbox.workspace({ limits }, signal)
    const browser = browsers.of(workspace)
    try {
      await browsers.prepare(workspace, await planEgress(workspace), signal)
      if (!browser.isReady()) throw new ToolError('There is no memory for another browser.')
      return { workspace, hasDied: () => !browser.isReady(), close: () => workspace.close() }
    } catch (error) {
      await workspace.close()
      throw error
    }
  }
  const ready = createReadyWorkspaces({ open, count, pauseMs, idleMs })
  return {
    async take(limits, signal) {
      for (let found = ready.take(limits); found; found = ready.take(limits)) {
        if (await browsers.of(found.workspace).answers(signal)) return found.workspace
        await found.close()
      }
      return null
    },
    close: ready.close,
  }
}
