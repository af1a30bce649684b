// A closed loop of clients on raw sockets: each sends the next turn of its conversation as soon as it has the answer to the one
// before, and begins again after the last. Prints one JSON line.
import { connect, type Socket } from 'node:net'
import { HttpFrames } from './http-frames.ts'

export interface LoadOptions {
  readonly port: number
  /** One a client, in turns. */
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  /** Bytes of a request, in the middle of its conversation. */
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

interface Shape {
  /** Turns of one conversation. */
  readonly turns: number
  /** Bytes that a turn sends more than the one before; the engine's ids go on from those of the turn before. */
  readonly growth: number
}

const shapeOf = (bodyBytes: number): Shape => (bodyBytes < 10_000 ? { turns: 3, growth: 512 } : { turns: 20, growth: 1024 })

const text = (bytes: number) => 'Iron is a metal, and so is lead. '.repeat(Math.ceil(bytes / 33)).slice(0, Math.max(0, bytes))

/** Requests of one conversation, `bodyBytes` long in the middle of it, in which the model always says `answer`. */
export function conversationBodies(bodyBytes: number, stream: boolean, model: string, answer: string): Buffer[] {
  const { turns, growth } = shapeOf(bodyBytes)
  const tool = {
    type: 'function',
    function: {
      name: 'lookup',
      description: 'Looks up an element of the periodic table.',
      parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  }
  const answerMessage = { role: 'assistant', content: answer }
  const replied = { role: 'user', content: text(growth - JSON.stringify([answerMessage, { role: 'user', content: '' }]).length + 1) }
  const build = (first: number, turn: number) => {
    const messages = [
      { role: 'system', content: 'Answer with the help of the tools.' },
      { role: 'user', content: text(first) },
    ]
    for (let index = 0; index < turn; index++) messages.push(answerMessage, replied)
    return Buffer.from(JSON.stringify({ model, messages, tools: [tool], temperature: 1, ...(stream && { stream: true }) }))
  }
  const first = bodyBytes - (growth * (turns - 1)) / 2 - build(0, 0).length
  return Array.from({ length: turns }, (_, turn) => build(first, turn))
}

/** What the model says: the same to all. */
async function learnAnswer({ port, paths, headers, model }: LoadOptions): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${paths[0]}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Which of these is heaviest?' }] }),
  })
  const answer = (await response.json()) as { choices?: { message: { content: string } }[] }
  const content = answer.choices?.[0]?.message.content
  if (content === undefined) throw new Error(`The first request was answered ${response.status}: ${JSON.stringify(answer).slice(0, 300)}`)
  return content
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
  const bodies = conversationBodies(bodyBytes, stream, model, await learnAnswer(options))
  const lines = Object.entries({ 'content-type': 'application/json', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const latencies: number[] = []
  let errors = 0
  let measuring = false
  let open = true
  let startedAt = 0
  let endedAt = 0
  const ended = Promise.withResolvers<void>()

  const client = (path: string) => {
    const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines.join('')}content-length: `
    let turn = 0
    const start = () => {
      const socket: Socket = connect({ host: '127.0.0.1', port, noDelay: true })
      let frames = new HttpFrames()
      let sentAt = performance.now()
      const send = () => {
        const body = bodies[turn]!
        turn = (turn + 1) % bodies.length
        sentAt = performance.now()
        socket.cork()
        socket.write(`${head}${body.length}\r\n\r\n`)
        socket.write(body)
        socket.uncork()
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
