import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the judge says to the last message of a request, or the status with which it refuses the request. */
export type Verdict = (question: string, call: number) => string | number | Promise<string | number>

/** A third party that speaks Chat Completions on loopback and wants the key `judge-secret`. */
export async function startJudge(verdict: Verdict) {
  const questions: string[] = []
  let busy = 0
  let mostBusy = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.headers.authorization !== 'Bearer judge-secret') return void response.writeHead(401).end('{"error":{"message":"no key"}}')
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: { content: string }[] }
    const question = messages.at(-1)!.content
    mostBusy = Math.max(mostBusy, ++busy)
    const content = await verdict(question, questions.push(question) - 1)
    busy--
    if (typeof content === 'number') return void response.writeHead(content).end('{"error":{"message":"no verdict"}}')
    const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }]
    const usage = { prompt_tokens: 400, completion_tokens: 20, total_tokens: 420 }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 0, model: 'large', choices, usage }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    /** The model as a configuration has it; its key is in JUDGE_KEY. Each call costs 0.0015 US dollars. */
    settings: {
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
      model: 'large',
      apiKeyEnv: 'JUDGE_KEY',
      price: { input: 3, output: 15 },
    },
    questions,
    mostBusy: () => mostBusy,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
