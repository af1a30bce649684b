import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { createGateway, type FrozenRoute, type Gateway } from '../index.ts'
import { sessionRequest } from '../testing/start-gateway.ts'

const frozen: FrozenRoute = { kind: 'frozen', baseUrl: 'http://127.0.0.1:1/v1', dialect: 'messages', model: 'x' }
const names = ['Qwen/Qwen3-0.6B', 'judge', 'größe 100%', '..']

async function start(models: readonly string[] = names) {
  const routes = Object.fromEntries(models.map((name) => [name, frozen]))
  const gateway = await createGateway({ models: routes, aliases: { 'gpt-4o': 'judge', '*': 'judge' }, seed: 1 })
  const agents = [{ name: 'agent', trainable: false }]
  const { baseUrl } = gateway.open(sessionRequest({ policy: 'judge', agents })).endpoint('agent')
  return { gateway, baseUrl, [Symbol.asyncDispose]: () => gateway.close() }
}

const bases = ({ gateway, baseUrl }: { gateway: Gateway; baseUrl: string }) => [`${gateway.url}/v1`, baseUrl]

test("OpenAI's client lists the models and asks for one, slashes in its name or not", async () => {
  await using started = await start()
  for (const baseURL of bases(started)) {
    const { models } = new OpenAI({ baseURL, apiKey: 'any', maxRetries: 0 })
    expect((await models.list()).data.map(({ id, object }) => [id, object])).toEqual(names.map((name) => [name, 'model']))
    for (const id of names.slice(0, 3)) expect(await models.retrieve(id)).toMatchObject({ id, object: 'model', created: 0 })
    expect((await models.retrieve('gpt-4o')).id).toBe('judge')
    const raw = await (await fetch(`${baseURL}/models/Qwen/Qwen3-0.6B`)).json()
    expect(raw).toEqual(await (await fetch(`${baseURL}/models/Qwen%2FQwen3-0.6B?x=1`)).json())
    await expect(models.retrieve('jugde')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      message: expect.stringMatching(/no model "jugde" here.*Did you mean "judge"/),
    })
    for (const odd of ['%', '%E0%A4', '__proto__', 'judge/', `${'x'.repeat(5_000)}`]) {
      const answer = await fetch(`${baseURL}/models/${odd}`)
      expect([odd.slice(0, 9), answer.status, (await answer.text()).length < 2_000]).toEqual([odd.slice(0, 9), 404, true])
    }
  }
})

test("Anthropic's client is answered in its own shape, page by page", async () => {
  await using started = await start()
  for (const base of bases(started)) {
    const { models } = new Anthropic({ baseURL: base.replace(/\/v1$/, ''), apiKey: 'any', maxRetries: 0 })
    const page = await models.list()
    expect(page).toMatchObject({ has_more: false, first_id: names[0], last_id: names.at(-1) })
    expect(page.data[1]).toMatchObject({ type: 'model', id: 'judge', display_name: 'judge', created_at: '1970-01-01T00:00:00Z' })
    const seen: string[] = []
    for await (const { id } of models.list({ limit: 1 })) seen.push(id)
    expect(seen).toEqual(names)
    const before = await models.list({ limit: 2, before_id: names[3]! })
    expect([before.data.map(({ id }) => id), before.has_more]).toEqual([names.slice(1, 3), true])
    expect((await models.retrieve('Qwen/Qwen3-0.6B')).display_name).toBe('Qwen/Qwen3-0.6B')
    await expect(models.retrieve('jugde')).rejects.toMatchObject({
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error', message: expect.stringContaining('no model "jugde"') } },
    })
    for (const query of [{ limit: 0 }, { limit: 1.5 }, { after_id: 'nobody' }])
      await expect(models.list(query)).rejects.toMatchObject({ status: 400, error: { error: { type: 'invalid_request_error' } } })
  }
})

test("either header of Anthropic's clients is enough", async () => {
  await using started = await start()
  for (const headers of [{ 'anthropic-version': '2023-06-01' }, { 'x-api-key': 'any' }])
    expect(await (await fetch(`${started.gateway.url}/v1/models`, { headers })).json()).toHaveProperty('has_more', false)
})
