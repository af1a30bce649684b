import {
  type AgentDeclaration,
  type Environment,
  type EnvironmentLease,
  type LeaseRequest,
  type Tools,
  TrainError,
  toTrainError,
  type WorkspaceFile,
  withDeadline,
} from '@aworld-train/core'
import type { TimeBudget } from './time-budget.ts'
import type { ToolJournal } from './tool-journal.ts'

export interface AttemptToolsOptions {
  readonly request: LeaseRequest
  readonly environment: Environment
  readonly journal: ToolJournal
  readonly budget: TimeBudget
  readonly signal: AbortSignal
  readonly leaseTimeoutMs: number
  /** Called when a server that kept state for this attempt is gone. */
  readonly onLost: (error: TrainError) => void
}

/** The tools of one attempt. Its agents share one lease, taken on first use and given back at the end; each call is journalled. */
export interface AttemptTools {
  /** The tools of one of the agent's invocations. */
  tools(agent: AgentDeclaration, trajectory: string): Promise<Tools>
  /** The first lease or server that was lost. */
  failure(): TrainError | null
  /** The files that the environment collects, after all calls have ended; `null` if it collects none. */
  collect(): Promise<readonly WorkspaceFile[] | null>
  /** Gives the lease back. Resolves to the error if that fails. */
  close(): Promise<TrainError | null>
}

const noTools: Tools = {
  list: async () => [],
  call: async ({ name }) => ({ content: `There is no tool "${name}".`, isError: true }),
}

export function createAttemptTools(options: AttemptToolsOptions): AttemptTools {
  const { request, environment, journal, budget, signal, leaseTimeoutMs, onLost } = options
  let lease: EnvironmentLease | null = null
  const opened = new Map<string, Promise<Tools>>()
  let failure: TrainError | null = null

  const late = (what: string) => () =>
    new TrainError('ENVIRONMENT_START_FAILED', `The tools of rollout "${request.rollout}" took more than ${leaseTimeoutMs} ms to ${what}.`)

  function openLease(): EnvironmentLease {
    const opened = environment.lease(request)
    opened.lost.addEventListener('abort', () => onLost(opened.lost.reason), { once: true })
    return opened
  }

  async function open({ name, mcpConfig, mcpServers, hiddenTools }: AgentDeclaration): Promise<Tools> {
    if (!mcpConfig) return noTools
    signal.throwIfAborted()
    const release = budget.hold()
    try {
      lease ??= openLease()
      const tools = lease.tools({ agent: name, mcpConfig, mcpServers, hiddenTools }, signal)
      return await withDeadline(tools, leaseTimeoutMs, late('start'))
    } catch (error) {
      signal.throwIfAborted()
      failure ??= toTrainError(error, 'ENVIRONMENT_START_FAILED')
      throw failure
    } finally {
      release()
    }
  }

  function journalled(agent: string, trajectory: string, tools: Tools): Tools {
    return {
      list: () => tools.list(),
      call: (request, callSignal) =>
        journal.run(
          { agent, trajectory, id: request.id, name: request.name, arguments: JSON.stringify(request.arguments) },
          async (rolloutSignal) => {
            try {
              return await tools.call(request, callSignal === rolloutSignal ? callSignal : AbortSignal.any([callSignal, rolloutSignal]))
            } catch (error) {
              if (error instanceof TrainError && error.boundary === 'environment') failure ??= error
              throw error
            }
          },
        ),
    }
  }

  return {
    async tools(agent, trajectory) {
      const tools = opened.get(agent.name) ?? open(agent)
      opened.set(agent.name, tools)
      return agent.mcpConfig ? journalled(agent.name, trajectory, await tools) : noTools
    },
    failure: () => failure,
    async collect() {
      if (!lease || lease.lost.aborted) return null
      const late = () =>
        new TrainError('TOOL_SERVER_DIED', `The files of rollout "${request.rollout}" were not read within ${leaseTimeoutMs} ms.`)
      return await withDeadline(lease.collect(AbortSignal.timeout(leaseTimeoutMs)), leaseTimeoutMs, late)
    },
    close: () =>
      withDeadline(Promise.resolve(lease?.close()), leaseTimeoutMs, late('stop')).then(
        () => null,
        (error: unknown) => toTrainError(error, 'ENVIRONMENT_START_FAILED'),
      ),
  }
}
