import { type Sandbox, toTrainError, type Workspace, type WorkspaceLimits } from '@aworld-train/core'
import { type Egress, egressVariables } from '../egress/open-egress.ts'

export interface LeasedWorkspaceOptions {
  readonly limits: Partial<WorkspaceLimits>
  /** Whether its commands reach the public web. */
  readonly net: boolean
  /** Leads programs of its workspace to the web: all of them, or those that know the credentials. */
  readonly openEgress: OpenEgress
  /** Takes a new workspace that stands ready, if there is one. */
  readonly takeReady: () => Promise<Workspace | null>
  readonly sandbox: Sandbox
  /** Called with errors of tools, with the failure of the workspace, and with an error of its removal. */
  readonly onError: (error: Error) => void
}

/** Opens the way of a workspace to the web, until the signal aborts. */
export type OpenEgress = (workspace: Workspace, isOpen: boolean, signal: AbortSignal) => Promise<Egress>

/** The workspace of a lease, and the way of its programs to the web. Each is opened at its first use, and anew after a failure. */
export interface LeasedWorkspace {
  open(): Promise<Workspace>
  egress(): Promise<Egress>
  close(): Promise<void>
}

export function createLeasedWorkspace(
  { limits, net, openEgress, takeReady, sandbox, onError }: LeasedWorkspaceOptions,
  signal: AbortSignal,
): LeasedWorkspace {
  let workspace: Promise<Workspace> | null = null
  let egress: Promise<Egress> | null = null

  async function openWorkspace(): Promise<Workspace> {
    const ready = await takeReady()
    if (ready) return ready
    const files = await sandbox.workspace(net ? { limits, env: egressVariables } : { limits }, signal)
    if (!net) return files
    try {
      await startEgress(files)
      return files
    } catch (error) {
      await files.close().catch(onError)
      throw error
    }
  }

  function startEgress(files: Workspace): Promise<Egress> {
    const starting = openEgress(files, net, signal)
    egress = starting
    starting.catch(() => {
      egress = null
    })
    return starting
  }

  function open(): Promise<Workspace> {
    if (signal.aborted) return Promise.reject(signal.reason)
    workspace ??= openWorkspace().catch((cause: unknown) => {
      workspace = null
      throw toTrainError(cause, 'ENVIRONMENT_START_FAILED')
    })
    return workspace
  }

  return {
    open,
    async egress() {
      const files = await open()
      return await (egress ?? startEgress(files))
    },
    async close() {
      const files = await workspace?.catch(() => null)
      workspace = null
      await files?.close().catch(onError)
    },
  }
}
