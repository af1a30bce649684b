import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type BenchRow, type BenchSuite, compare, type Spread, spreadOf } from '../suite.ts'
import { type ServedProcess, send, startServed } from '../token-in/served-process.ts'
import { text } from '../token-in/workload.ts'

const contexts = [2_048, 32_768]
/** Longer than anything here may wait. */
const defaultSeconds = 40
/** Bytes of a prompt for each token of context that a gateway takes at most. */
const bytesPerToken = 16
/** Bytes of a message of 40 characters as ChatML writes it. */
const shortBytes = 68
/** Room for what the template writes around a message. */
const templateBytes = 200

interface Load {
  readonly title: string
  readonly clients: number
  body(context: number, seed: number): string
}

const loads: readonly Load[] = [
  {
    title: '64 clients, one message as long as may be',
    clients: 64,
    body: (context, seed) => JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: textOf(largest(context), seed) }] }),
  },
  {
    title: '64 clients, short messages as many as may be',
    clients: 64,
    body: (context, seed) => {
      const content = textOf(40, seed)
      const messages = Array.from({ length: Math.floor(largest(context) / shortBytes) }, () => ({ role: 'user', content }))
      return JSON.stringify({ model: 'policy', messages })
    },
  },
  {
    title: '250 clients, 200 kB',
    clients: 250,
    body: (_, seed) => JSON.stringify({ model: 'policy', messages: [{ role: 'user', content: textOf(200_000, seed) }] }),
  },
]

const largest = (context: number) => bytesPerToken * context - templateBytes
/** Words of the model's vocabulary, other ones for each seed. */
const textOf = (bytes: number, seed: number) => text(Math.ceil(bytes / 4), seed).slice(0, bytes)

/** How long `/health` takes while clients send large prompts: `npm run bench -- health [seconds]`, forty seconds a load by default. */
export const health: BenchSuite = {
  async run(args) {
    const playedMs = 1_000 * Number(args[0] ?? defaultSeconds)
    const rows: BenchRow[] = []
    const notes: string[] = []
    await using idle = await startServed('gateway', contexts[0]!)
    for (const context of contexts) {
      await using gateway = await startServed('gateway', context)
      for (const load of loads) {
        const { waits, idleWaits, answers } = await play(gateway, idle, load, context, playedMs)
        const title = `context ${context.toLocaleString('en')}, ${load.title}`
        for (const [name, part] of [
          ['median', 0.5],
          ['p99', 0.99],
          ['longest', 1],
        ] as const) {
          const [ours, other] = [quantile(waits, part), quantile(idleWaits, part)]
          rows.push({ measure: `${title}: ${name} of /health`, unit: 'ms', better: 'lower', ours, peers: { idle: compare(ours, other) } })
        }
        const counted = Object.entries(Object.groupBy(answers, String)).map(([status, all]) => `${all!.length} × ${status}`)
        const bytes = Buffer.byteLength(load.body(context, 0))
        notes.push(`${title}: bodies of ${Math.round(bytes / 1000)} kB, answered in ${playedMs / 1000} s: ${counted.join(', ') || 'none'}`)
      }
    }
    notes.push(
      `/health is asked every 10 ms by a process of its own, and timed from when it was to be asked; idle: a gateway that has nothing else to do, asked at the same time; load average at the end ${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores, clients included`,
    )
    return { rows, notes }
  },
}

interface Played {
  /** Of all answers to `/health`, and of those of the idle gateway. */
  readonly waits: readonly number[]
  readonly idleWaits: readonly number[]
  /** Statuses of what the clients sent. */
  readonly answers: readonly number[]
}

/** Each client sends one prompt after another for some seconds, and hangs up at the end. */
async function play(gateway: ServedProcess, idle: ServedProcess, load: Load, context: number, playedMs: number): Promise<Played> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.clients })
  const answers: number[] = []
  const end = new AbortController()
  const urls: string[] = []
  for (let client = 0; client < load.clients; client += 1)
    urls.push((await gateway.ask({ do: 'open', rollout: `${load.title} ${client}` })).url!)
  const { url: idleUrl } = await idle.ask({ do: 'open', rollout: 'none' })
  const [probe, idleProbe] = [await startProbe(urls[0]!), await startProbe(idleUrl!)]
  const endsAt = Date.now() + playedMs
  const clients = urls.map(async (url, client) => {
    for (let sent = 0; Date.now() < endsAt; sent += 1) {
      const body = load.body(context, client * 1_000 + sent)
      const answer = await send(agent, url, body, end.signal).catch(() => null)
      if (answer) answers.push(answer.status)
    }
  })
  const timer = setTimeout(() => end.abort(), playedMs)
  await Promise.all(clients)
  clearTimeout(timer)
  const [waits, idleWaits] = [await probe(), await idleProbe()]
  agent.destroy()
  for (const each of [gateway, idle]) await each.ask({ do: 'close' })
  return { waits, idleWaits, answers }
}

/** Asks for the health of the server of `url`, and gives how long it took each time when it is called. */
async function startProbe(url: string): Promise<() => Promise<number[]>> {
  const probe = fork(fileURLToPath(new URL('../health/probe.ts', import.meta.url)), [new URL('/health', url).href])
  await once(probe, 'message')
  return async () => {
    const [reply, exit] = [once(probe, 'message'), once(probe, 'exit')]
    probe.send('stop')
    const [waits] = (await reply) as [number[]]
    await exit
    return waits
  }
}

function quantile(values: readonly number[], part: number): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return spreadOf([sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)]!])
}
