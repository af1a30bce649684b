import { Agent, request } from 'node:https'

export interface ApiClient {
  get<Answer>(path: string): Promise<Answer>
  post(path: string, body: object): Promise<void>
  /** By a strategic merge patch, which merges conditions by their type. */
  patch(path: string, body: object): Promise<void>
  /** What is not there is fine. */
  delete(path: string, body: object): Promise<void>
}

/** Speaks to an API server with the token of an account. Methods reject with what the server says. */
export function createApiClient(server: string, certificate: string, token: string): ApiClient {
  const agent = new Agent({ keepAlive: true, ca: certificate })

  async function send(method: string, path: string, body?: object, accepted: readonly number[] = []): Promise<unknown> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const type = method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json'
    const { status, answer } = await new Promise<{ status: number; answer: string }>((resolve, reject) => {
      // Node gives the body of a DELETE no length by itself, and the server then refuses it.
      const headers = { authorization: `Bearer ${token}`, 'content-type': type, 'content-length': Buffer.byteLength(text) }
      const sent = request(new URL(path, server), { method, agent, headers, timeout: 30_000 }, (response) => {
        let answer = ''
        response.setEncoding('utf8').on('data', (part: string) => (answer += part))
        response.once('end', () => resolve({ status: response.statusCode ?? 0, answer })).once('error', reject)
      })
      sent.once('timeout', () => sent.destroy(new Error('no answer in 30 s')))
      sent.once('error', reject).end(text)
    })
    if ((status < 200 || status > 299) && !accepted.includes(status)) throw new Error(`${method} ${path}: ${status} ${answer}`)
    return JSON.parse(answer)
  }

  return {
    get: async <Answer>(path: string) => (await send('GET', path)) as Answer,
    post: async (path, body) => void (await send('POST', path, body, [409])),
    patch: async (path, body) => void (await send('PATCH', path, body)),
    delete: async (path, body) => void (await send('DELETE', path, body, [404, 409])),
  }
}
