import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type OutwardCassette, openOutward } from '@aworld-train/http'
import { afterEach, expect, it } from 'vitest'
import { json, openStandIn, type StandInAnswer } from '../testing/stand-in.ts'
import { modelServices } from './model-services.ts'
import { modelSettings, openToolModel } from './models.ts'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close()
})

const question = { system: 'Be brief.', user: 'How far?', temperature: 0 }

/** The answer of a role's model whose server answers like this. */
async function complete(answer: (body: string, authorization: string) => StandInAnswer): Promise<string> {
  const server = await openStandIn(({ body, headers }) => answer(body, String(headers.authorization)))
  const values = new Map([
    ['THINK_LLM_BASE_URL', `${server.url}/v1`],
    ['THINK_LLM_MODEL_NAME', 'thinker'],
    ['THINK_LLM_API_KEY', 'sk-1'],
  ])
  const outward = await openOutward({ services: modelServices(values) })
  closing.push(server, outward)
  const { signal } = new AbortController()
  const model = await openToolModel('think', modelSettings(values, 'think'), outward, signal)
  return await model.complete(question)
}

it('a model is asked with its key, and its answer is read', async () => {
  const seen: unknown[] = []
  const text = await complete((body, authorization) => {
    seen.push(authorization, JSON.parse(body))
    return json({ id: 'x', choices: [{ index: 0, message: { role: 'assistant', content: 'Two days.' } }, {}] })
  })
  expect(text).toBe('Two days.')
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'How far?' },
  ]
  expect(seen).toEqual(['Bearer sk-1', { model: 'thinker', messages, temperature: 0 }])
})

it('a recording is sent as the same form each time, so that what was said is replayed', async () => {
  const bodies: Buffer[] = []
  const server = await openStandIn(({ url: { pathname }, bytes }) => {
    bodies.push(bytes)
    return json({ text: `said at ${pathname}` })
  })
  const values = new Map([
    ['AUDIO_LLM_BASE_URL', `${server.url}/v1`],
    ['AUDIO_LLM_MODEL_NAME', 'listener'],
  ])
  const recording = { name: 'audio.wav', bytes: Buffer.from([0, 255, 13, 10, 254]) }
  const transcribe = async (cassette?: OutwardCassette) => {
    await using stack = new AsyncDisposableStack()
    const outward = stack.adopt(await openOutward({ services: modelServices(values), cassette }), (each) => each.close())
    const model = await openToolModel('audio', modelSettings(values, 'audio'), outward, new AbortController().signal)
    return await model.transcribe(recording)
  }
  const path = join(await mkdtemp(join(tmpdir(), 'world-')), 'world.jsonl')
  const texts = [await transcribe(), await transcribe({ path, mode: 'record' })]
  await server.close()
  texts.push(await transcribe({ path, mode: 'replay' }))
  await rm(dirname(path), { recursive: true })
  expect(texts).toEqual(texts.map(() => 'said at /v1/audio/transcriptions'))
  expect(bodies[1]).toEqual(bodies[0])
  expect(bodies[0]!.includes(recording.bytes)).toBe(true)
  const boundary = bodies[0]!.toString('latin1', 2).split('\r\n', 1)[0]
  const form = await new Response(new Uint8Array(bodies[0]!), {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  }).formData()
  expect([form.get('model'), form.get('response_format'), (form.get('file') as File).name]).toEqual(['listener', 'json', 'audio.wav'])
})

it.each<[string, StandInAnswer, RegExp]>([
  ['an error', json({ error: 'no such model' }, 404), /^The model thinker answered with status 404: \{"error":"no such model"\}$/],
  ['no JSON', { body: 'busy' }, /^The model thinker answered with something that is no JSON: busy$/],
  ['no choice', json({ choices: [] }), /^The model thinker answered in a form that is not understood \("choices/],
  ['a choice without text', json({ choices: [{ message: { content: null } }] }), /not understood \("choices\.0\.message\.content": /],
])('a model that answers with %s is a problem that the caller reads', async (_, answer, message) => {
  await expect(complete(() => answer)).rejects.toMatchObject({ name: 'ToolError', message: expect.stringMatching(message) })
})
