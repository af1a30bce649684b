// The rollout service over HTTP, with a gateway, a run store and an agent of one model call. Prints its address, and answers every
// message of its parent with the memory that is in use.
import { once } from 'node:events'
import { Agent, toAgentProgram } from '@aworld-train/agent'
import { serveAgentSide } from '@aworld-train/training'
import { systemPrompt } from './agent.ts'
import { openParts } from './open-parts.ts'

export interface ServedRollouts {
  readonly url: string
  /** The run directory. */
  readonly path: string
}

/** Bytes that are in use after a collection. */
export interface MemoryInUse {
  readonly heap: number
  readonly buffers: number
}

const [upstreamPort, slots] = process.argv.slice(2).map(Number) as [number, number]
await using stack = new AsyncDisposableStack()
const parts = await openParts(stack, upstreamPort, slots)
const { server } = await serveAgentSide(stack, {
  ...parts,
  program: toAgentProgram(new Agent({ name: 'agent', systemPrompt })),
  reward: null,
  answers: null,
  concurrency: slots,
  onEvent: (event) => parts.store.appendEvent(event),
  channel: null,
  server: {},
})
process.on('message', () => {
  // The second collects what the finalizers of the first let go.
  globalThis.gc!()
  setImmediate(() => {
    globalThis.gc!()
    const { heapUsed, external } = process.memoryUsage()
    process.send!({ heap: heapUsed, buffers: external } satisfies MemoryInUse)
  })
})
process.stdout.write(`${JSON.stringify({ url: server.url, path: parts.path } satisfies ServedRollouts)}\n`)
await once(process, 'SIGTERM')
process.disconnect()
