import { createAttemptExecutor, runWorker, type WorkerOptions } from '@aworld-train/rollout'
import { agentIdentity } from '@aworld-train/training'
import { createEnvironment } from '../environment.ts'
import { loadAgent } from '../load/load-agent.ts'

export interface AgentWorkerOptions extends Omit<WorkerOptions, 'agent' | 'openExecutor' | 'baseDirectory'> {
  /** `./agent.ts#agent` or `./agent.yaml`, the same as at its coordinator. */
  readonly agent: string
  /** Folder that `agent` is relative to. */
  readonly directory: string
}

/** Runs an agent and its tools for a coordinator until it is drained. Rejects as `loadAgent` and `runWorker` do. */
export async function runAgentWorker({ agent, directory, ...options }: AgentWorkerOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const loaded = await loadAgent(agent, directory)
  const program: typeof loaded.program & { close?(): Promise<void> } = loaded.program
  stack.defer(async () => await program.close?.())
  await runWorker({
    ...options,
    agent: agentIdentity(loaded),
    baseDirectory: loaded.directory,
    openExecutor(settings) {
      const environment = stack.adopt(createEnvironment({ baseDirectory: loaded.directory, ...settings }), (each) => each.close())
      return createAttemptExecutor({ program, environment, baseDirectory: loaded.directory })
    },
  })
}
