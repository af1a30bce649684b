import type { Environment, LeaseRequest, ToolSelection, Tools } from '@aworld-train/core'

/** A lease with the tools of its only agent. */
export interface AgentLease {
  readonly tools: Tools
  readonly directory: string
  readonly lost: AbortSignal
  close(): Promise<void>
}

/** Leases tools for one agent. A lease whose tools fail is given back. */
export async function leaseTools(
  environment: Environment,
  selection: Pick<ToolSelection, 'mcpConfig' | 'mcpServers'>,
  request: Partial<LeaseRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<AgentLease> {
  const lease = environment.lease({ rollout: 'rollout', attempt: 0, sample: 0, task: { id: 'task' }, ...request })
  try {
    const tools = await lease.tools({ agent: 'agent', ...selection }, signal)
    return {
      tools,
      get directory() {
        return lease.directory
      },
      lost: lease.lost,
      close: () => lease.close(),
    }
  } catch (error) {
    await lease.close()
    throw error
  }
}
