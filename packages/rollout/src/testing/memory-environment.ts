import { setTimeout as sleep } from 'node:timers/promises'
import type { Environment, LeaseRequest, ToolSelection, Tools } from '@aworld-train/core'

export interface MemoryEnvironment extends Environment {
  openLeases(): number
  /** Every request for a lease. */
  readonly requests: readonly LeaseRequest[]
  /** Every agent's tools that were asked for. */
  readonly selections: readonly ToolSelection[]
}

export interface MemoryEnvironmentOptions {
  readonly call?: Tools['call'] | undefined
  /** Awaited before an agent gets its tools, with the number of earlier requests. */
  readonly beforeTools?: ((earlier: number, signal: AbortSignal) => Promise<void>) | undefined
  readonly closeDelayMs?: number | undefined
}

/** An Environment with one tool, `echo` unless `call` says otherwise, and no process. */
export function memoryEnvironment({ call, beforeTools, closeDelayMs = 0 }: MemoryEnvironmentOptions = {}): MemoryEnvironment {
  const requests: LeaseRequest[] = []
  const selections: ToolSelection[] = []
  let open = 0
  let toolCalls = 0

  const tools: Tools = {
    list: async () => [{ name: 'echo', parameters: { type: 'object' } }],
    async call(toolRequest, toolSignal) {
      toolCalls++
      toolSignal.throwIfAborted()
      return call ? await call(toolRequest, toolSignal) : { content: JSON.stringify(toolRequest.arguments), isError: false }
    },
  }

  return {
    requests,
    selections,
    lease(request) {
      requests.push(request)
      open++
      return {
        directory: '/nowhere',
        async tools(selection, signal) {
          selections.push(selection)
          await beforeTools?.(selections.length - 1, signal)
          signal.throwIfAborted()
          return tools
        },
        async close() {
          if (closeDelayMs > 0) await sleep(closeDelayMs)
          open--
        },
      }
    },
    sandboxes: () => [],
    counts: async () => ({ toolCalls, toolErrors: 0, serverToolCalls: null, serversStarted: 0, serversReplaced: 0 }),
    close: async () => {},
    openLeases: () => open,
  }
}
