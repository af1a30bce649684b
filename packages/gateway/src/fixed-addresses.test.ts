import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { sessionRequest, startGateway } from './testing/start-gateway.ts'

const key = 'a-key-of-plain-clients'
const messages = [{ role: 'user' as const, content: 'Hi.' }]
const clients = (address: { path: string; key: string }, rollout = 'clients') => sessionRequest({ rollout, maxKeptTurns: 10, address })

test.each(['', 'agents'])('the address "%s" is opened by its key alone, by clients of every dialect', async (path) => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  const session = gateway.open(clients({ path, key }))
  const endpoint = session.endpoint('agent')
  expect(endpoint).toMatchObject({ baseUrl: `${gateway.url}${path && `/${path}`}/v1`, apiKey: key })
  const openai = (apiKey: string) => new OpenAI({ baseURL: endpoint.baseUrl, apiKey, maxRetries: 0 })
  const anthropic = (apiKey: string) => new Anthropic({ baseURL: endpoint.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 })
  expect((await openai(key).chat.completions.create({ model: 'any', messages })).choices[0]!.message.content).toBe('Fine.')
  expect((await openai(key).responses.create({ model: 'any', input: 'Hi.' })).output_text).toBe('Fine.')
  expect((await openai(key).models.list()).data).toHaveLength(1)
  const body = { model: 'any', max_tokens: 9, messages }
  expect((await anthropic(key).messages.create(body)).stop_reason).toBe('end_turn')
  for (const wrong of ['any', key.slice(1), `${key}x`, key.toUpperCase()]) {
    const unauthorized = { status: 401, message: expect.stringMatching(/key is missing or wrong; send the one of this address/) }
    await expect(openai(wrong).chat.completions.create({ model: 'any', messages })).rejects.toMatchObject(unauthorized)
    await expect(anthropic(wrong).messages.create(body)).rejects.toMatchObject({ status: 401, error: { type: 'error' } })
  }
  const answer = await fetch(`${endpoint.baseUrl}/chat/completions`, { method: 'POST', body: '{}' })
  expect([answer.status, (await answer.text()).includes(key)]).toEqual([401, false])
  // A capability in the key still opens its own record.
  const other = gateway.open(sessionRequest({ rollout: 'other' }))
  const shared = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: other.endpoint('agent').apiKey, maxRetries: 0 })
  await shared.chat.completions.create({ model: 'any', messages })
  expect((await other.close())[0]!.turns).toHaveLength(1)
  expect((await session.close())[0]!.turns).toHaveLength(3)
  const closed = await fetch(`${endpoint.baseUrl}/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` } })
  expect(closed.status).toBe(404)
})

test('an address that cannot be one is refused', async () => {
  await using started = await startGateway({ say: [] })
  const { gateway } = started
  const open = (path: string, own = key, rollout = path) => gateway.open(clients({ path, key: own }, `rollout ${rollout}`))
  for (const path of ['/agents', 'a/b', '..', 'a b', 'ä', 'x'.repeat(129)]) expect(() => open(path)).toThrow(/must be one part of a URL/)
  for (const path of ['v1', 'r', 'health', 'metrics']) expect(() => open(path)).toThrow(/must be another than v1, r/)
  expect(() => open('a', 'short')).toThrow(/key of an address is shorter than 16 characters/)
  for (const own of ['with spaces in between', 'with a line\nin it: 0123', 'schlüssel-0123456789'])
    expect(() => open('a', own)).toThrow(/no header carries/)
  open('a')
  expect(() => open('a', key, 'second')).toThrow(/"a", is the address of another session/)
  const agents = ['one', 'two'].map((name) => ({ name, trainable: true }))
  expect(() => gateway.open(sessionRequest({ rollout: 'two', agents, address: { path: 'b', key } }))).toThrow(/is that of one agent/)
})

test('who asks without an address is told where one is, in the shape of the dialect', async () => {
  await using started = await startGateway({ say: [] })
  const { gateway } = started
  const { apiKey } = gateway.open(sessionRequest()).endpoint('agent')
  for (const path of [
    '/v1/chat/completions',
    '/v1/responses',
    '/v1/messages',
    '/messages',
    '/agents/v1/chat/completions',
    '/r/x/v1/messages',
  ]) {
    for (const authorization of ['', 'Bearer sk-any']) {
      const answer = await fetch(gateway.url + path, { method: 'POST', headers: { authorization }, body: '{}' })
      const text = await answer.text()
      const { type, error } = JSON.parse(text) as { type?: string; error: { message: string; type: string } }
      const isAnthropic = path.endsWith('/messages')
      expect([path, answer.status, type]).toEqual([path, 404, isAnthropic ? 'error' : undefined])
      expect(error.message).toMatch(/"aworld-train serve" prints it.*POST \/v1\/sessions/)
      expect(text).not.toContain(apiKey.slice(-22))
    }
  }
})
