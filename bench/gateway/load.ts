// A closed loop of clients on raw sockets: each sends the same request again as soon as it has its answer. Prints one JSON line.
import { connect, type Socket } from 'node:net'
import { HttpFrames } from './http-frames.ts'

export interface LoadOptions {
  readonly port: number
  /** One a client, in turns. */
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly bodyBytes: number
  readonly stream: boolean
  readonly connections: number
  readonly warmUpSeconds: number
  readonly seconds: number
  /** Ends earlier after so many requests. */
  readonly requests?: number
  /** Model named in the body. */
  readonly model: string
}

export interface LoadResult {
  readonly requests: number
  readonly errors: number
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

/** A Chat Completions request of `bytes` bytes, with tools and a tool result, as an agent sends it in its third turn. */
export function requestBody(bytes: number, stream: boolean, model: string): Buffer {
  const tool = {
    type: 'function',
    function: {
      name: 'lookup',
      description: 'Looks up an element of the periodic table.',
      parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  }
  const call = (id: string) => ({ id, type: 'function', function: { name: 'lookup', arguments: '{"name": "iron"}' } })
  const build = (filler: number) =>
    Buffer.from(
      JSON.stringify({
        model,
        messages: [
          { role: 'system', content: 'Answer with the help of the tools.' },
          {
            role: 'user',
            content: `Which of these is heaviest? ${'Iron is a metal and so is lead. '.repeat(filler / 32).padEnd(filler, 'x')}`,
          },
          { role: 'assistant', content: null, tool_calls: [call('call_1')] },
          { role: 'tool', tool_call_id: 'call_1', content: '55.845' },
        ],
        tools: [tool],
        temperature: 1,
        ...(stream && { stream: true }),
      }),
    )
  return build(Math.max(0, bytes - build(0).length))
}

async function main(options: LoadOptions): Promise<LoadResult> {
  const {
    port,
    paths,
    headers,
    bodyBytes,
    stream,
    connections,
    warmUpSeconds,
    seconds,
    requests = Number.POSITIVE_INFINITY,
    model,
  } = options
  const body = requestBody(bodyBytes, stream, model)
  const lines = Object.entries({ 'content-type': 'application/json', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const latencies: number[] = []
  let errors = 0
  let measuring = false
  let open = true
  let startedAt = 0
  let endedAt = 0
  const ended = Promise.withResolvers<void>()

  const client = (path: string) => {
    const request = Buffer.concat([
      Buffer.from(`POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n`),
      body,
    ])
    const start = () => {
      const socket: Socket = connect({ host: '127.0.0.1', port, noDelay: true })
      let frames = new HttpFrames()
      let sentAt = performance.now()
      const send = () => {
        sentAt = performance.now()
        socket.write(request)
      }
      let closed = false
      const again = () => {
        if (closed) return
        closed = true
        socket.destroy()
        if (!open) return
        if (measuring) errors++
        setTimeout(start, 5)
      }
      socket.on('connect', send)
      socket.on('error', again)
      socket.on('close', again)
      socket.on('data', (data) => {
        if (!frames.push(data)) return
        if (measuring) {
          latencies.push(performance.now() - sentAt)
          if (!frames.firstLine.includes(' 200 ')) errors++
          if (latencies.length >= requests) finish()
        }
        frames = new HttpFrames()
        if (open) send()
        else socket.destroy()
      })
    }
    start()
  }
  const finish = () => {
    if (!open) return
    open = false
    endedAt = performance.now()
    ended.resolve()
  }
  for (let index = 0; index < connections; index++) client(paths[index % paths.length]!)
  setTimeout(() => {
    process.stdout.write('measuring\n')
    measuring = true
    startedAt = performance.now()
    setTimeout(finish, seconds * 1000)
  }, warmUpSeconds * 1000)
  await ended.promise
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN
  return { requests: latencies.length, errors, seconds: (endedAt - startedAt) / 1000, p50: at(0.5), p99: at(0.99) }
}

if (process.argv[1]?.endsWith('load.ts')) {
  const result = await main(JSON.parse(process.argv[2] ?? '{}') as LoadOptions)
  process.stdout.write(`${JSON.stringify(result)}\n`)
  process.exit(0)
}
