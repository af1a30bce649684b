import { type Environment, type LeaseRequest, type ToolSelection, type Tools, TrainError } from '@aworld-train/core'

export interface MemoryEnvironment extends Environment {
  openLeases(): number
  /** Every request for a lease. */
  readonly requests: readonly LeaseRequest[]
  /** Every request for the tools of an agent. */
  readonly selections: readonly ToolSelection[]
}

export interface MemoryEnvironmentOptions {
  readonly call?: Tools['call'] | undefined
  /** Awaited before an agent gets its tools, with the number of earlier requests. */
  readonly beforeTools?: ((earlier: number, signal: AbortSignal) => Promise<void>) | undefined
  /** Awaited before a lease is closed. */
  readonly beforeClose?: (() => Promise<void>) | undefined
}

/**
 * An Environment without processes, with one tool that echoes unless `call` says otherwise. A call that rejects with
 * TOOL_SERVER_DIED ends its lease.
 */
export function memoryEnvironment({ call, beforeTools, beforeClose }: MemoryEnvironmentOptions = {}): MemoryEnvironment {
  const requests: LeaseRequest[] = []
  const selections: ToolSelection[] = []
  let open = 0
  let toolCalls = 0

  const toolsOf = (lost: AbortController): Tools => ({
    list: async () => [{ name: 'echo', parameters: { type: 'object' } }],
    async call(toolRequest, toolSignal) {
      toolCalls++
      toolSignal.throwIfAborted()
      lost.signal.throwIfAborted()
      try {
        return call ? await call(toolRequest, toolSignal) : { content: JSON.stringify(toolRequest.arguments), isError: false }
      } catch (error) {
        if (error instanceof TrainError && error.code === 'TOOL_SERVER_DIED') lost.abort(error)
        throw error
      }
    },
  })

  return {
    requests,
    selections,
    lease(request) {
      requests.push(request)
      open++
      const lost = new AbortController()
      return {
        directory: '/nowhere',
        lost: lost.signal,
        async tools(selection, signal) {
          selections.push(selection)
          await beforeTools?.(selections.length - 1, signal)
          signal.throwIfAborted()
          return toolsOf(lost)
        },
        collect: async () => null,
        async close() {
          await beforeClose?.()
          open--
        },
      }
    },
    sandboxes: () => [],
    counts: async () => ({ toolCalls, toolErrors: 0, serverToolCalls: null, serversStarted: 0, serversLost: 0 }),
    close: async () => {},
    openLeases: () => open,
  }
}
