// Many multi-turn rollouts at once, on raw sockets. A turn sends the whole conversation so far, 3 KB longer each time, and names
// the time the engine is to take. Prints one JSON line.
import { connect, type Socket } from 'node:net'
import { HttpFrames } from './http-frames.ts'
import { makeWorkload, type RolloutPlan } from './workload.ts'

export interface RolloutsOptions {
  readonly port: number
  /** Where a rollout asks for its URL and gives it back; without it all go straight to the engine. */
  readonly controlPort?: number
  readonly count: number
  readonly rampSeconds: number
  readonly model: string
}

export interface RolloutsResult {
  /** Seconds from the first start to the last end. */
  readonly makespan: number
  readonly bound: number
  readonly turns: number
  readonly errors: number
  /** Milliseconds a turn took beyond the engine's own time. */
  readonly addedP50: number
  readonly addedP99: number
}

const text = 'Iron is a metal, and so is lead. '.repeat(91)

/** One connection that is kept for all its requests. */
class Connection {
  readonly #socket: Socket
  #frames = new HttpFrames()
  #waiting: { resolve: (frames: HttpFrames) => void; reject: (error: Error) => void } | undefined
  readonly #host: string

  constructor(port: number) {
    this.#host = `127.0.0.1:${port}`
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#socket.on('data', (data) => {
      if (!this.#frames.push(data)) return
      const frames = this.#frames
      this.#frames = new HttpFrames()
      this.#waiting?.resolve(frames)
    })
    this.#socket.on('error', (error) => this.#waiting?.reject(error))
    this.#socket.on('close', () => this.#waiting?.reject(new Error('the connection closed')))
  }

  send(path: string, body: string): Promise<HttpFrames> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpFrames>()
    this.#waiting = { resolve, reject }
    this.#socket.write(
      `POST ${path} HTTP/1.1\r\nhost: ${this.#host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    return promise
  }

  close(): void {
    this.#socket.destroy()
  }
}

async function main({ port, controlPort, count, rampSeconds, model }: RolloutsOptions): Promise<RolloutsResult> {
  const workload = makeWorkload(count, rampSeconds)
  const added: number[] = []
  let errors = 0

  async function rollout(plan: RolloutPlan, index: number): Promise<void> {
    const connection = new Connection(port)
    const control = controlPort === undefined ? undefined : new Connection(controlPort)
    try {
      const opened = await control?.send('/open', JSON.stringify({ rollout: `bench-${index}` }))
      const path = opened === undefined ? '/v1/chat/completions' : opened.start
      let conversation = '{"role":"system","content":"Answer with the help of the tools."}'
      for (const milliseconds of plan) {
        conversation += `,{"role":"user","content":"${text}"}`
        const sentAt = performance.now()
        const { firstLine } = await connection.send(
          path,
          `{"user":"d${milliseconds}","model":"${model}","messages":[${conversation}],"temperature":1}`,
        )
        added.push(performance.now() - sentAt - milliseconds)
        if (!firstLine.includes(' 200 ')) errors++
        conversation += ',{"role":"assistant","content":"So it is."}'
      }
      await control?.send('/close', JSON.stringify({ rollout: `bench-${index}` }))
    } catch {
      errors++
    } finally {
      connection.close()
      control?.close()
    }
  }

  const startedAt = performance.now()
  await Promise.all(
    workload.rollouts.map(async (plan, index) => {
      await new Promise((resolve) => setTimeout(resolve, (rampSeconds * 1000 * index) / count))
      await rollout(plan, index)
    }),
  )
  const makespan = (performance.now() - startedAt) / 1000
  added.sort((a, b) => a - b)
  const at = (share: number) => added[Math.floor(added.length * share)] ?? Number.NaN
  return { makespan, bound: workload.bound, turns: workload.turns, errors, addedP50: at(0.5), addedP99: at(0.99) }
}

if (process.argv[1]?.endsWith('rollouts.ts')) {
  process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as RolloutsOptions))}\n`)
  process.exit(0)
}
