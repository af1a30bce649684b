import { expect, test } from 'vitest'
import { post, sessionRequest, startGateway } from '../testing/start-gateway.ts'

const token = 'an-admin-token-of-some-length'

test('a known path says which methods it has, in the shape of its dialect; a body is never needed to hear it', async () => {
  await using started = await startGateway({ say: () => 'Fine.', admin: { token, weights: { tiny: async () => ({}) as never } } })
  const { gateway } = started
  const { baseUrl } = gateway.open(sessionRequest()).endpoint('agent')
  const answer = await fetch(`${baseUrl}/responses`, { method: 'POST', body: JSON.stringify({ input: 'Hi.' }) })
  const { id } = (await answer.json()) as { id: string }
  const admin = { authorization: `Bearer ${token}` }
  const session = await fetch(`${gateway.url}/v1/sessions`, { method: 'POST', headers: admin })
  const opened = (await session.json()) as { id: string }
  const reading = 'GET, HEAD'
  const paths: Readonly<Record<string, string>> = {
    [`${gateway.url}/health`]: reading,
    [`${gateway.url}/ready`]: reading,
    [`${gateway.url}/metrics`]: reading,
    [`${gateway.url}/v1/models`]: reading,
    [`${gateway.url}/v1/models/tiny`]: reading,
    [`${gateway.url}/v1/models/tiny/weights`]: 'POST',
    [`${gateway.url}/v1/sessions`]: 'POST',
    [`${gateway.url}/v1/sessions/${opened.id}`]: 'GET, HEAD, DELETE',
    [`${baseUrl}/models`]: reading,
    [`${baseUrl}/models/tiny`]: reading,
    [`${baseUrl}/chat/completions`]: 'POST',
    [`${baseUrl}/responses`]: 'POST',
    [`${baseUrl}/responses/${id}`]: 'GET, HEAD, DELETE',
    [`${baseUrl}/responses/input_tokens`]: 'POST',
    [`${baseUrl}/messages`]: 'POST',
    [`${baseUrl}/messages/count_tokens`]: 'POST',
  }
  for (const [url, allow] of Object.entries(paths)) {
    for (const method of ['PUT', 'PATCH', 'OPTIONS', allow.startsWith('GET') ? 'POST' : 'GET', ...(allow === 'POST' ? ['HEAD'] : [])]) {
      const refused = await fetch(url, { method, headers: admin })
      const body = await refused.text()
      expect([url, method, refused.status, refused.headers.get('allow')]).toEqual([url, method, 405, allow])
      if (method === 'HEAD') continue
      const { type, error } = JSON.parse(body) as { type?: string; error: { message: string; code: string } }
      expect([error.code, type]).toEqual(['method_not_allowed', url.includes('/messages') ? 'error' : undefined])
      expect(error.message).toContain(`answers ${allow}, not ${method}`)
    }
    if (!allow.startsWith(reading)) continue
    const [head, get] = [await fetch(url, { method: 'HEAD', headers: admin }), await fetch(url, { headers: admin })]
    expect([url, head.status, await head.text()]).toEqual([url, 200, ''])
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    await get.text()
  }
  // Methods of a path are told only to those who may use it.
  expect((await fetch(`${gateway.url}/v1/sessions`)).status).toBe(401)
  expect((await fetch(`${gateway.url}/r/unknown/v1/messages`)).status).toBe(404)
  expect((await post({ baseUrl, apiKey: '', model: '' }, { messages: [{ role: 'user', content: 'Hi.' }] })).status).toBe(200)
})
