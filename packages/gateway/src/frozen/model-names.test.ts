import type { Trajectory } from '@aworld-train/core'
import { expect, test } from 'vitest'
import type { GatewayWarning } from '../options.ts'
import { openFrozen } from '../testing/open-frozen.ts'
import { say } from '../testing/third-party.ts'
import { isModelOf } from './model-names.ts'

const dialects = ['chat-completions', 'responses', 'messages'] as const
const ways = dialects.flatMap((dialect) => [false, true].map((stream) => ({ dialect, stream })))
const paths = { 'chat-completions': '/chat/completions', responses: '/responses', messages: '/messages' }

/** A third party of which `model` answers, whichever is asked for. */
async function openOther(model: string | undefined, dialect: (typeof dialects)[number], route: { readonly exactModel?: boolean } = {}) {
  const warnings: GatewayWarning[] = []
  const opened = await openFrozen({
    answer: (call, response) => say({ ...call, body: { ...call.body, model } }, response, '✓'),
    route: { dialect, ...route },
    gateway: { onWarning: (warning) => warnings.push(warning) },
  })
  const ask = async (stream: boolean) => {
    const body = { stream, max_tokens: 9, messages: [{ role: 'user', content: 'x' }], input: 'x' }
    const url = opened.session.endpoint('agent').baseUrl + paths[dialect]
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  }
  return { ...opened, warnings, ask }
}

test.each(ways)('the model that answered is kept with the turn, and another one is said once ($dialect, stream: $stream)', async (way) => {
  await using opened = await openOther('small', way.dialect)
  for (let call = 0; call < 3; call++) expect((await opened.ask(way.stream)).status).toBe(200)
  expect(opened.warnings).toMatchObject([{ code: 'OTHER_MODEL', details: { model: 'solver', requested: 'large', answered: 'small' } }])
  const [{ turns }] = (await opened.session.close()) as [Trajectory]
  expect(turns.map(({ model, responseModel }) => [model, responseModel])).toEqual(Array(3).fill(['solver', 'small']))
})

test.each(ways)('an answer of another model is refused where the exact one is wanted ($dialect, stream: $stream)', async (way) => {
  await using opened = await openOther('large-2026-08-01', way.dialect, { exactModel: true })
  const { text } = await opened.ask(way.stream)
  expect(text).not.toContain('✓')
  expect(text).toContain('\\"large-2026-08-01\\" answered; correct the name')
  expect(opened.session.failure()).toMatchObject({ code: 'FROZEN_MODEL_FAILED' })
  expect((await opened.session.close()).flatMap(({ turns }) => turns)).toEqual([])
  await using exact = await openOther('large', way.dialect, { exactModel: true })
  expect(await exact.ask(way.stream)).toMatchObject({ status: 200, text: expect.stringContaining('✓') })
  await using unnamed = await openOther(undefined, way.dialect, { exactModel: true })
  await unnamed.ask(way.stream)
  expect(unnamed.session.failure()).toMatchObject({ message: expect.stringContaining('names no model') })
})

test('an answer without a name is no alarm, nor is a dated name', async () => {
  for (const model of [undefined, 'large-2026-08-01']) {
    await using opened = await openOther(model, 'chat-completions')
    expect((await opened.ask(false)).status).toBe(200)
    expect(opened.warnings).toEqual([])
    const [{ turns }] = (await opened.session.close()) as [Trajectory]
    expect(turns[0]!.responseModel).toBe(model)
  }
})

test.each([
  ['gpt-5-mini', 'gpt-5-mini', true],
  ['gpt-5-mini', 'gpt-5-mini-2026-08-01', true],
  ['gpt-4', 'gpt-4-0613', true],
  ['claude-sonnet-4-5', 'claude-sonnet-4-5-20250929', true],
  ['claude-3-5-haiku-latest', 'claude-3-5-haiku-20241022', true],
  ['claude-sonnet-4', 'claude-sonnet-4@20250514', true],
  ['gpt-5', 'gpt-5-mini', false],
  ['gpt-4', 'gpt-4.1', false],
  ['gpt-4', 'gpt-4-32k', false],
  ['gpt-5-mini', 'gpt-5', false],
  ['large', 'a-smaller-model', false],
])('%s answered by %s: the same model %s', (requested, answered, expected) => {
  expect(isModelOf(requested, answered)).toBe(expected)
})
