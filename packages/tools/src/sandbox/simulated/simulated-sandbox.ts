import type { Sandbox, WorkspaceLimits } from '@aworld-train/core'
import { SimulatedWorkspace } from './simulated-workspace.ts'
import { createWorkspaceThreads } from './workspace-threads.ts'

const MiB = 1024 * 1024

const defaultLimits: WorkspaceLimits = {
  memoryBytes: 512 * MiB,
  diskBytes: 128 * MiB,
  processes: 1,
  cpuSeconds: 60,
  outputBytes: 64 * 1024,
}

/**
 * A simulated sandbox: bash and its programs are written in TypeScript, Python and JavaScript run in WebAssembly, and files are in memory.
 * Nothing of the machine can be reached, because nothing asks the operating system.
 */
export async function openSimulatedSandbox(notices: readonly string[] = []): Promise<Sandbox> {
  const workspaces = new Set<SimulatedWorkspace>()
  const threads = createWorkspaceThreads()
  return {
    tier: 'simulated',
    notices: [
      ...notices,
      'Commands are simulated: programs other than those of the simulation end with exit code 127.',
      'CPU time and the number of processes are not limited, the time of each command is; Python has at most 512 MB of memory, JavaScript 64 MB.',
    ],
    async workspace({ limits }, signal) {
      signal.throwIfAborted()
      const workspace = new SimulatedWorkspace({ ...defaultLimits, ...limits }, threads, () => workspaces.delete(workspace))
      workspaces.add(workspace)
      return workspace
    },
    async close() {
      await Promise.all([...workspaces].map((workspace) => workspace.close()))
      await threads.close()
    },
  }
}
