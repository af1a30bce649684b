import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Command, Reply } from './gateway-process.ts'

export interface ServedProcess extends AsyncDisposable {
  readonly agent: Agent
  ask(command: Command): Promise<Reply>
}

/** Starts a process that is measured alone; `context` is the longest conversation of its model in tokens. */
export async function startServed(kind: 'gateway' | 'echo', context: number): Promise<ServedProcess> {
  const child = fork(fileURLToPath(new URL('gateway-process.ts', import.meta.url)), [kind, String(context)])
  const ended = once(child, 'exit')
  const broken = ended.then(([code]) => {
    throw new Error(`The measured process ended with exit code ${code}.`)
  })
  broken.catch(() => {})
  const replyOf = async () => ((await Promise.race([once(child, 'message'), broken])) as [Reply])[0]
  await replyOf()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async (command: Command): Promise<Reply> => {
    const reply = replyOf()
    child.send(command)
    return await reply
  }
  return {
    agent,
    ask,
    async [Symbol.asyncDispose]() {
      agent.destroy()
      await ask({ do: 'stop' })
      await ended
    },
  }
}

/** Posts JSON as it is; rejects where the connection breaks, or the signal ends it. */
export function send(agent: Agent, url: string, body: string, signal?: AbortSignal): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request(url, { method: 'POST', agent, headers, ...(signal && { signal }) })
    call.on('error', reject)
    call.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('error', reject)
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString() }))
    })
    call.end(body)
  })
}
