import { TrainError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createGateway } from '../gateway.ts'
import { startChatGateway } from '../testing/start-chat-gateway.ts'
import { post, sessionRequest, startGateway, until } from '../testing/start-gateway.ts'
import { say, startThirdParty } from '../testing/third-party.ts'

const user = { role: 'user', content: 'Hi.' }

/** Values of the samples of one metric, by the text of their labels. */
function samples(text: string, name: string): Record<string, number> {
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith(`aworld_train_gateway_${name}{`) || line.startsWith(`aworld_train_gateway_${name} `))
  return Object.fromEntries(lines.map((line) => [/\{(.*)\}/.exec(line)?.[1] ?? '', Number(line.slice(line.lastIndexOf(' ')))]))
}

test('calls are counted by model, dialect, outcome and error code, with their times and tokens', async () => {
  const down = new TrainError('POLICY_UNAVAILABLE', 'The engine is down.')
  await using started = await startGateway({
    say: (_, call) => {
      if (call === 1) throw down
      return call === 2 ? { text: 'a long answer', pieceDelayMs: 5 } : 'Fine.'
    },
  })
  const { gateway, engine } = started
  const session = gateway.open(sessionRequest())
  const endpoint = session.endpoint('agent')
  await post(endpoint, { model: 'a name of the client', messages: [user] })
  await post(endpoint, { messages: [user] })
  await post(endpoint, 'no json')
  const leaving = new AbortController()
  const call = post(endpoint, { messages: [user], stream: true }, { signal: leaving.signal }).catch(() => {})
  const before = engine.sampledTokens()
  await until(() => engine.sampledTokens() > before)
  leaving.abort()
  await call
  await until(() => gateway.counts().inFlight === 0)
  const text = await gateway.metrics()
  const labels = (outcome: string, code: string, model = 'tiny') =>
    `model="${model}",dialect="chat-completions",outcome="${outcome}",code="${code}"`
  expect(samples(text, 'calls_total')).toEqual({
    [labels('ok', '')]: 1,
    [labels('failed', 'POLICY_UNAVAILABLE')]: 1,
    [labels('failed', 'GATEWAY_BAD_REQUEST', 'none')]: 1,
    [labels('client-closed', '')]: 1,
  })
  expect(samples(text, 'call_duration_seconds_count')).toEqual({
    'model="tiny",dialect="chat-completions"': 3,
    'model="none",dialect="chat-completions"': 1,
  })
  expect(samples(text, 'time_to_first_token_seconds_count')['model="tiny",dialect="chat-completions"']).toBe(2)
  expect(samples(text, 'queue_duration_seconds_count')['model="tiny",dialect="chat-completions"']).toBe(3)
  expect(samples(text, 'tokens_total')['model="tiny",dialect="chat-completions",kind="sampled"']).toBe(engine.sampledTokens())
  expect(samples(text, 'sampled_tokens_total')['']).toBe(engine.sampledTokens())
  expect(samples(text, 'abandoned_turns_total')['']).toBe(1)
  const infinite = samples(text, 'call_duration_seconds_bucket')
  expect(infinite['le="+Inf",model="tiny",dialect="chat-completions"']).toBe(3)
  expect(text).not.toContain('a name of the client')
})

test('what is held, in flight and open is a gauge, and goes back to nothing', async () => {
  await using started = await startGateway({ say: () => ({ text: 'Fine.', pieceDelayMs: 1 }) })
  const { gateway } = started
  const session = gateway.open(sessionRequest())
  await gateway.pause({ drain: true })
  const calls = [1, 2].map(() => post(session.endpoint('agent'), { messages: [user] }))
  const read = async (...names: string[]) => {
    const text = await gateway.metrics()
    return names.map((name) => samples(text, name)[''])
  }
  await expect.poll(() => read('waiting', 'in_flight', 'paused', 'sessions')).toEqual([2, 0, 1, 1])
  expect((await read('oldest_waiting_seconds'))[0]).toBeGreaterThan(0)
  expect((await read('sockets'))[0]).toBeGreaterThanOrEqual(2)
  gateway.resume()
  await Promise.all(calls)
  await session.close()
  expect(await read('waiting', 'in_flight', 'paused', 'sessions', 'oldest_waiting_seconds')).toEqual([0, 0, 0, 0, 0])
})

test('names from requests, capabilities and bodies are in no metric', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  const session = gateway.open(sessionRequest({ rollout: 'a-secret-rollout' }))
  const endpoint = session.endpoint('agent')
  for (let index = 0; index < 300; index++) {
    await post(endpoint, { messages: [user], model: `model-${index}`, [`field-${index}`]: 1, temperature: 0.5 })
  }
  await fetch(`${gateway.url}/r/never.0.granted.AAAA/v1/chat/completions`, { method: 'POST', body: '{}' })
  await fetch(`${endpoint.baseUrl}/nowhere`, { method: 'POST', body: '{}' })
  const text = await gateway.metrics()
  for (const secret of [endpoint.apiKey, 'a-secret-rollout', 'never', 'nowhere', 'field-', 'model-', 'Hi.'])
    expect(text).not.toContain(secret)
  expect(samples(text, 'ignored_fields_total')).toEqual({ 'field="other"': 300, 'field="temperature"': 300 })
  expect(samples(text, 'refused_total')).toMatchObject({ 'reason="unknown-url"': 1, 'reason="wrong-path"': 1 })
  expect(text.length).toBeLessThan(30_000)
})

test('/metrics is the text format of Prometheus, each sample once under its help and type', async () => {
  await using started = await startGateway({ say: () => 'Fine.' })
  const { gateway } = started
  await post(gateway.open(sessionRequest()).endpoint('agent'), { messages: [user] })
  const answer = await fetch(`${gateway.url}/metrics`)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = (await answer.text()).split('\n').filter((line) => line !== '')
  const keys = lines.filter((line) => !line.startsWith('#')).map((line) => line.slice(0, line.lastIndexOf(' ')))
  expect(new Set(keys).size).toBe(keys.length)
  for (const line of lines) expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"\n]*",?)+\})? -?[\d.e+-]+)$/)
  const names = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2])
  expect(names).toContain('aworld_train_gateway_event_loop_delay_p99_seconds')
  for (const key of keys) expect(names.some((name) => key.startsWith(name!))).toBe(true)
})

test('calls that pass through are counted by what was recorded of them, streamed or not', async () => {
  await using started = await startChatGateway((_, index) => (index === 2 ? { status: 500, body: 'out of memory' } : '79.'))
  const { gateway } = started
  const endpoint = gateway.open(sessionRequest()).endpoint('agent')
  for (const stream of [false, true, false]) await post(endpoint, { messages: [user], stream })
  const cell = 'model="policy",dialect="chat-completions"'
  // An answer leaves before it has been read, so its call ends after its client has it.
  await expect
    .poll(async () => samples(await gateway.metrics(), 'calls_total'))
    .toEqual({ [`${cell},outcome="ok",code=""`]: 2, [`${cell},outcome="failed",code="POLICY_UNAVAILABLE"`]: 1 })
  const text = await gateway.metrics()
  expect(samples(text, 'tokens_total')[`${cell},kind="sampled"`]).toBe(2 * '79.\0'.length)
  expect(samples(text, 'time_to_first_token_seconds_count')[cell]).toBe(2)
  expect(samples(text, 'queue_duration_seconds_count')[cell]).toBe(3)
})

test('tokens and dollars of a frozen model stand apart, and its key is in no metric', async () => {
  await using party = await startThirdParty((call, response) => say(call, response, 'Yes.'))
  const judge = {
    kind: 'frozen',
    baseUrl: party.url,
    dialect: 'chat-completions',
    model: 'large',
    apiKey: 'sk-secret',
    price: { input: 3, output: 15 },
  } as const
  const gateway = await createGateway({ models: { judge }, seed: 1 })
  const session = gateway.open(sessionRequest({ agents: [{ name: 'agent', trainable: false }] }))
  await post(session.endpoint('agent'), { messages: [user] })
  const { turns } = (await session.close())[0]!
  const text = await gateway.metrics()
  const cell = 'model="judge",dialect="chat-completions"'
  const { promptTokens, completionTokens } = turns[0]!.usage
  expect(promptTokens).toBeGreaterThan(0)
  expect(samples(text, 'tokens_total')).toMatchObject({
    [`${cell},kind="sampled"`]: 0,
    [`${cell},kind="frozen-prompt"`]: promptTokens,
    [`${cell},kind="frozen-completion"`]: completionTokens,
  })
  expect(samples(text, 'frozen_cost_dollars_total')[cell]).toBeCloseTo((3 * promptTokens + 15 * completionTokens) / 1e6, 12)
  expect(text).not.toContain('sk-secret')
  await gateway.close()
})
