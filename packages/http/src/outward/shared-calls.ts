import { orAborted } from '@aworld-train/core'

/** Runs `work`, or joins the run of the same key that is under way. The run is aborted when all who wait for it have left. */
export type ShareCall<Value> = (key: string, work: (signal: AbortSignal) => Promise<Value>, signal: AbortSignal) => Promise<Value>

export function createSharedCalls<Value>(): ShareCall<Value> {
  const calls = new Map<string, { readonly result: Promise<Value>; readonly controller: AbortController; waiting: number }>()
  return async (key, work, signal) => {
    signal.throwIfAborted()
    let call = calls.get(key)
    if (!call) {
      const controller = new AbortController()
      call = { result: work(controller.signal), controller, waiting: 0 }
      calls.set(key, call)
    }
    call.waiting++
    try {
      return await orAborted(call.result, signal)
    } finally {
      if (--call.waiting === 0) {
        calls.delete(key)
        call.controller.abort()
      }
    }
  }
}
