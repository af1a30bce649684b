import { TrainError, type WeightPublication, WeightReport } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { PublishWeights } from '../options.ts'
import { sessionRequest, startGateway } from '../testing/start-gateway.ts'

const token = 'an-admin-token-of-some-length'
const ask = (url: string, name: string, body: unknown, { method = 'POST', bearer = token } = {}) =>
  fetch(`${url}/v1/models/${name}/weights`, {
    method,
    headers: { authorization: `Bearer ${bearer}` },
    ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
const failure = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string; message: string; param: string | null } }
  return [answer.status, error.code, error.message]
}

test('a trainer updates the weights of a model by its name', async () => {
  const publications: WeightPublication[] = []
  const publish: PublishWeights = async (publication) => {
    publications.push(publication)
    const { version, policy = null } = publication
    const error = new TrainError('POLICY_UNAVAILABLE', 'no room').toRecord()
    return { version, policy, durationMs: 1.5, replicas: [{ server: 'http://gpu-1', difference: null, error }] }
  }
  await using started = await startGateway({ say: [], admin: { token, weights: { local: publish, 'a/b c': publish } } })
  const { url } = started.gateway
  const body = { version: 3, directory: '/steps/3', policy: 'helper', inFlight: 'keep' }
  const answer = await ask(url, 'local', body)
  expect(answer.status).toBe(200)
  expect(WeightReport.parse(await answer.json())).toMatchObject({
    version: 3,
    policy: 'helper',
    replicas: [{ error: { code: 'POLICY_UNAVAILABLE', message: 'no room' } }],
  })
  expect((await ask(url, 'a%2Fb%20c', { version: 4 })).status).toBe(200)
  expect(publications).toEqual([body, { version: 4 }])
})

test('only the admin token does it, and only for models that can', async () => {
  let published = 0
  const publish: PublishWeights = async ({ version }) => {
    published++
    return { version, policy: null, durationMs: 0, replicas: [] }
  }
  await using started = await startGateway({ say: [], admin: { token, weights: { other: publish } } })
  const { gateway, engine } = started
  const { url } = gateway
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  for (const bearer of ['', endpoint.apiKey, `${token}x`])
    expect(await failure(await ask(url, 'other', { version: 1 }, { bearer }))).toEqual([401, 'unauthorized', expect.any(String)])
  const through = await fetch(`${endpoint.baseUrl}/models/other/weights`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  expect(through.status).toBe(404)
  expect(await failure(await ask(url, engine.model.name, { version: 1 }))).toEqual([
    404,
    'not_found',
    expect.stringMatching(/cannot be updated here.*"other"/),
  ])
  // "*" is an alias here, and still a misspelt name reaches nobody.
  expect(await failure(await ask(url, 'othr', { version: 1 }))).toEqual([404, 'model_not_found', expect.stringMatching(/no model "othr"/)])
  expect(await failure(await ask(url, '%E0%A4', { version: 1 }))).toEqual([404, 'model_not_found', expect.any(String)])
  expect(await failure(await ask(url, 'other', null, { method: 'PUT' }))).toEqual([405, 'method_not_allowed', expect.any(String)])
  const wrong = [
    '{',
    {},
    { version: -1 },
    { version: 1.5 },
    { version: 1, directory: '' },
    { version: 1, inFlight: 'wait' },
    { version: 1, dir: '/a' },
  ]
  for (const body of wrong) expect((await failure(await ask(url, 'other', body)))[0]).toBe(400)
  expect(published).toBe(0)
})

test('without an admin token there is no such route', async () => {
  await using started = await startGateway({ say: [] })
  expect((await ask(started.gateway.url, 'local', { version: 1 })).status).toBe(404)
})

test('what went wrong is typed, and an update ends with the gateway', async () => {
  let begun = () => {}
  const waits = new Promise<void>((resolve) => {
    begun = resolve
  })
  const errors: Readonly<Record<number, Error>> = {
    1: new TrainError('POLICY_VERSION_CONFLICT', 'Version 1 was to be published after 2.'),
    2: new TrainError('POLICY_UNAVAILABLE', 'No server could be updated.'),
    3: new TrainError('POLICY_STALE_WEIGHTS', 'It samples others.'),
    4: new Error('odd'),
  }
  let ended: unknown = null
  const publish: PublishWeights = async ({ version }, signal) => {
    const error = errors[version]
    if (error) throw error
    begun()
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    ended = signal.reason
    throw signal.reason
  }
  await using started = await startGateway({ say: [], admin: { token, weights: { local: publish } } })
  const { gateway } = started
  const statuses = []
  for (const version of [1, 2, 3, 4]) statuses.push((await failure(await ask(gateway.url, 'local', { version }))).slice(0, 2))
  expect(statuses).toEqual([
    [409, 'version_conflict'],
    [503, 'policy_unavailable'],
    [500, 'policy_stale_weights'],
    [503, 'policy_unavailable'],
  ])
  const open = ask(gateway.url, 'local', { version: 5 }).catch(() => null)
  await waits
  await gateway.close()
  await open
  expect(ended).toMatchObject({ code: 'POLICY_UNAVAILABLE' })
})
