import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createGateway } from '../index.ts'
import { openFrozen } from '../testing/open-frozen.ts'
import { until } from '../testing/start-gateway.ts'
import { say } from '../testing/third-party.ts'

const json = { 'content-type': 'application/json' }
const page = '<!doctype html>\n<html><head><title>Welcome to nginx!</title></head></html>'
const error = (message: string) => JSON.stringify({ error: { message, type: 'invalid_request_error' } })
const events = { 'content-type': 'text/event-stream' }
const chunk = `data: ${JSON.stringify({ model: 'large', choices: [{ index: 0, delta: { content: 'Ye' }, finish_reason: null }] })}\n\n`

interface Case {
  readonly answer: (response: ServerResponse) => void
  readonly route?: Parameters<typeof openFrozen>[0]['route']
  readonly stream?: boolean
  readonly message: RegExp
}

const cases: Record<string, Case> = {
  'a web page with 200': {
    answer: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page),
    message: /"solver" answered a web page: <!doctype html> .*Welcome to nginx!.*Check its base URL: an API mostly ends with \/v1/,
  },
  'a web page to a call for a stream': {
    answer: (response) => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page),
    stream: true,
    message: /answered a web page.*Check its base URL/,
  },
  'a web page that says it is JSON': {
    answer: (response) => response.writeHead(200, json).end(page),
    message: /"solver" gave no usable answer.*check its address and which API it serves/,
  },
  'a redirection': {
    answer: (response) => response.writeHead(308, { location: 'https://other.example/v1/chat/completions' }).end(),
    route: { apiKey: 'sk-0123456789' },
    message: /answered 308: no text\. It leads to https:\/\/other\.example\/v1\/chat\/completions; set its base URL/,
  },
  'a key that is wanted and not there': {
    answer: (response) => response.writeHead(401, json).end(error('You did not provide an API key.')),
    message: /answered 401: You did not provide an API key\. It wants a key; give it one\./,
  },
  'a key that is refused': {
    answer: (response) => response.writeHead(403, json).end(error('Forbidden.')),
    route: { apiKey: 'sk-0123456789' },
    message: /answered 403: Forbidden\. Check its key\./,
  },
  'no such model': {
    answer: (response) => response.writeHead(404, json).end(error('The model `large` does not exist.')),
    message: /answered 404: The model `large` does not exist\. Check the model's name\./,
  },
  'no such path': {
    answer: (response) => response.writeHead(404, { 'content-type': 'text/html' }).end('Not Found'),
    message: /answered 404: Not Found\. Check its base URL: it is the part before \/chat\/completions/,
  },
  'an error with 200': {
    answer: (response) => response.writeHead(200, json).end(error('Provider returned error')),
    message: /"solver" gave no usable answer.*is an error: Provider returned error/,
  },
  'nothing with 200': {
    answer: (response) => response.writeHead(200, json).end(),
    message: /"solver" gave no usable answer.*cannot be read/,
  },
  'half a stream that ends': {
    answer: (response) => response.writeHead(200, events).end(chunk),
    stream: true,
    message: /"solver" gave no usable answer.*ended before its finish reason/,
  },
  'half a stream that breaks': {
    answer: (response) => void response.writeHead(200, events).write(chunk, () => setTimeout(() => response.destroy(), 20)),
    stream: true,
    message: /"solver" broke off its answer/,
  },
  'half an answer that ends': {
    answer: (response) => response.writeHead(200, json).end('{"choices":[{"message":{"content":"Ye'),
    message: /"solver" gave no usable answer.*cannot be read/,
  },
}

test.each(Object.entries(cases))(
  '%s is a typed failure that says what to do, and no turn',
  async (_name, { answer, route, stream, message }) => {
    await using opened = await openFrozen({ answer: (_call, response) => answer(response), route: { evaluated: true, ...route } })
    const { text } = await opened.ask({ stream: stream ?? false })
    expect(text).toMatch(/frozen_model_failed/)
    expect(text).not.toContain('[DONE]')
    expect(opened.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED', message: expect.stringMatching(message) })
    expect((await opened.session.close()).flatMap(({ turns }) => turns)).toEqual([])
    expect(opened.party.calls).toHaveLength(1)
  },
)

test('a redirection is not followed, so that the key goes nowhere else', async () => {
  await using elsewhere = await openFrozen({ answer: (call, response) => say(call, response, 'Yes.') })
  const location = `${elsewhere.party.url}/chat/completions`
  const redirect = (_call: unknown, response: ServerResponse) => void response.writeHead(307, { location }).end()
  await using opened = await openFrozen({ answer: redirect, route: { apiKey: 'sk-0123456789' } })
  expect((await opened.ask()).status).toBe(502)
  expect(elsewhere.party.calls).toEqual([])
})

test.each([
  [{ apiKey: '' }, /key of model "solver" is empty/],
  [{ baseUrl: 'gpu:8000/v1' }, /base URL of model "solver" is "gpu:8000\/v1"/],
  [{ baseUrl: 'http://' }, /base URL of model "solver"/],
])('a gateway with %o does not start', async (route, message) => {
  const solver = { kind: 'frozen', baseUrl: 'http://127.0.0.1:1/v1', dialect: 'chat-completions', model: 'large', ...route } as const
  await expect(createGateway({ models: { solver }, seed: 1 })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(message),
  })
})

test('the time of a turn begins when its call is sent, not when it begins to wait for load', async () => {
  let busyAt = 0
  await using opened = await openFrozen({
    answer(call, response, index) {
      if (index > 0) return say(call, response, 'Yes.')
      busyAt = Date.now()
      response.writeHead(429, { 'retry-after': '0.5' }).end()
    },
  })
  await opened.ask()
  await until(() => opened.party.calls.length === 2)
  const [trajectory] = await opened.session.close()
  expect(trajectory!.turns[0]!.timing.startedAt - busyAt).toBeGreaterThan(450)
})
