import type { AgentDeclaration, Environment, EnvironmentLease, Tools } from '@aworld-train/core'
import { TrainError, toTrainError } from '@aworld-train/protocol'
import type { TimeBudget } from './time-budget.ts'
import type { ToolJournal } from './tool-journal.ts'
import { withDeadline } from './with-deadline.ts'

export interface AttemptToolsOptions {
  readonly rollout: string
  readonly attempt: number
  readonly environment: Environment
  readonly journal: ToolJournal
  readonly budget: TimeBudget
  readonly signal: AbortSignal
  readonly leaseTimeoutMs: number
}

/** The tools of one attempt: leased on first use, journalled, given back at the end. */
export interface AttemptTools {
  tools(agent: AgentDeclaration): Promise<Tools>
  /** The first lease or server that was lost. */
  failure(): TrainError | null
  /** Gives back every lease; resolves to what went wrong with that. */
  close(): Promise<Error[]>
}

const noTools: Tools = {
  list: async () => [],
  call: async ({ name }) => ({ content: `There is no tool "${name}".`, isError: true }),
}

export function createAttemptTools(options: AttemptToolsOptions): AttemptTools {
  const { rollout, attempt, environment, journal, budget, signal, leaseTimeoutMs } = options
  const leases = new Map<string, Promise<EnvironmentLease>>()
  const opened = new Map<string, Promise<Tools>>()
  let failure: TrainError | null = null

  const late = (what: string) => () =>
    new TrainError('ENVIRONMENT_START_FAILED', `The tools of rollout "${rollout}" took more than ${leaseTimeoutMs} ms to ${what}.`)

  async function open({ name, mcpConfig, mcpServers, hiddenTools }: AgentDeclaration): Promise<Tools> {
    if (!mcpConfig) return noTools
    signal.throwIfAborted()
    const release = budget.hold()
    try {
      const lease = environment.lease({ rollout, attempt, agent: name, mcpConfig, mcpServers, hiddenTools }, signal)
      leases.set(name, lease)
      return journalled(name, (await withDeadline(lease, leaseTimeoutMs, late('start'))).tools)
    } catch (error) {
      signal.throwIfAborted()
      failure ??= toTrainError(error, 'ENVIRONMENT_START_FAILED')
      throw failure
    } finally {
      release()
    }
  }

  function journalled(agent: string, tools: Tools): Tools {
    return {
      list: () => tools.list(),
      call: (request, own) =>
        journal.run({ agent, id: request.id, name: request.name, arguments: JSON.stringify(request.arguments) }, async (rolloutSignal) => {
          try {
            return await tools.call(request, own === rolloutSignal ? own : AbortSignal.any([own, rolloutSignal]))
          } catch (error) {
            if (error instanceof TrainError && error.boundary === 'environment') failure ??= error
            throw error
          }
        }),
    }
  }

  async function giveBack(lease: Promise<EnvironmentLease>): Promise<Error | null> {
    const got = await lease.catch(() => null)
    if (!got) return null
    try {
      await got.close()
      return null
    } catch (error) {
      return toTrainError(error, 'ENVIRONMENT_START_FAILED')
    }
  }

  return {
    tools(agent) {
      const existing = opened.get(agent.name)
      if (existing) return existing
      const tools = open(agent)
      opened.set(agent.name, tools)
      return tools
    },
    failure: () => failure,
    async close() {
      const closing = Array.from(leases.values(), (lease) =>
        withDeadline(giveBack(lease), leaseTimeoutMs, late('stop')).catch((error: Error) => error),
      )
      return (await Promise.all(closing)).filter((error) => error !== null)
    },
  }
}
