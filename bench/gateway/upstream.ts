// An engine that costs nothing: answers every Chat Completions request at once, or after the time that its body names, with
// the bytes that vLLM 0.32 sends with `return_token_ids` and `logprobs`. Raw sockets; every gateway is given the same answers.
import { createServer, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { completionChunks, completionJson, generateChunks } from './answers.ts'
import { HttpFrames } from './http-frames.ts'

const { values } = parseArgs({ options: { delay: { type: 'string', default: '0' }, tokens: { type: 'string', default: '64' } } })
const delay = Number(values.delay)
const tokens = Number(values.tokens)

const chunked = (text: string) => {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}
const streamHead = Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n')

function whole(body: Buffer): Buffer {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

/** Answers by the number of prompt tokens, rounded so that there are few of them. */
const cache = new Map<string, Buffer>()
function answerTo(bodyLength: number, stream: boolean): Buffer {
  const promptTokens = Math.max(128, Math.round(bodyLength / 4 / 128) * 128)
  const key = `${promptTokens} ${stream}`
  let answer = cache.get(key)
  if (!answer) {
    answer = stream
      ? Buffer.concat([streamHead, ...completionChunks({ promptTokens, tokens }).map(chunked), Buffer.from('0\r\n\r\n')])
      : whole(Buffer.from(completionJson({ promptTokens, tokens })))
    cache.set(key, answer)
  }
  return answer
}

/** Asks for the tool once a turn, each turn in its time of the plan, and answers in the last. A turn `300:120` gives the tool a time too. */
function answerPlan(socket: Socket, plan: readonly string[], { body, bodyLength }: HttpFrames): void {
  const turn = body.split('"role":"tool"').length - 1
  const promptTokens = Math.round(bodyLength / 4)
  const [wait = '0', toolTime] = plan[turn]?.split(':') ?? []
  const toolCall = turn + 1 < plan.length && { id: `call_${turn}`, arguments: toolTime ? `{"milliseconds":${toolTime}}` : '{}' }
  const text = completionJson({ promptTokens, tokens, ...(toolCall && { toolCall }) })
  setTimeout(() => {
    if (!socket.destroyed) socket.write(whole(Buffer.from(text)))
  }, Number(wait))
}

const generated = Buffer.concat([streamHead, ...generateChunks(tokens).map(chunked), Buffer.from('0\r\n\r\n')])

function answer(socket: Socket, frames: HttpFrames): void {
  const { start, end, bodyLength, firstLine } = frames
  if (firstLine.startsWith('GET')) {
    socket.write(whole(Buffer.from('{"object":"list","data":[{"id":"bench","object":"model","created":0,"owned_by":"bench"}]}')))
    return
  }
  const plan = /plan ([\d: ]+)/.exec(start)
  if (plan) {
    answerPlan(socket, plan[1]!.trim().split(' '), frames)
    return
  }
  const stream = /"stream": *true/.test(start) || /"stream": *true/.test(end)
  const named = /"user": *"d(\d+)"/.exec(start) ?? /"user": *"d(\d+)"/.exec(end)
  const wait = named ? Number(named[1]) : delay
  const send = () => {
    if (socket.destroyed) return
    socket.write(firstLine.includes('/inference/v1/generate') ? generated : answerTo(bodyLength, stream))
  }
  if (wait > 0) setTimeout(send, wait)
  else send()
}

const server = createServer({ noDelay: true }, (socket) => {
  const frames = new HttpFrames()
  socket.on('error', () => {})
  socket.on('data', (data) => {
    if (frames.push(data)) answer(socket, frames)
  })
})
server.listen({ host: '127.0.0.1', port: 0, backlog: 8192 }, () => {
  const address = server.address()
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`)
})
