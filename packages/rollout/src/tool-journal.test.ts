import type { ToolCall, Trajectory, Turn } from '@aworld-train/core'
import { INVALID_SPAN_CONTEXT, trace } from '@opentelemetry/api'
import { expect, test } from 'vitest'
import { InvocationSpans } from './observe/invocation-spans.ts'
import { tieToolCalls } from './tie-tool-calls.ts'
import { createToolJournal } from './tool-journal.ts'

const never = new AbortController().signal
const spans = new InvocationSpans(trace.wrapSpanContext(INVALID_SPAN_CONTEXT))
const ok = async () => ({ content: 'ok', isError: false })

function journalOf({ maxToolCalls, signal = never }: { maxToolCalls?: number; signal?: AbortSignal } = {}) {
  const limits: unknown[] = []
  return { limits, journal: createToolJournal({ rollout: 'a', maxToolCalls, spans, signal, onLimit: (error) => limits.push(error) }) }
}

function trajectoryOf(agent: string, ...turns: ToolCall[][]): Trajectory {
  return {
    version: 2,
    id: agent,
    agent,
    policy: 'policy',
    trainable: true,
    startedBy: [],
    timing: null,
    turns: turns.map((toolCalls, index) => ({ index, toolCalls }) as unknown as Turn),
  }
}

const call = (id: string | undefined, text = '{"a":1}', agent = 'agent') => ({
  agent,
  trajectory: agent,
  id,
  name: 'echo',
  arguments: text,
})
const asking = (id: string, text = '{ "a": 1 }') => ({ id, name: 'echo', arguments: text })

test('equal calls without ids go to the turns that asked, each once, and the rest to none', async () => {
  const { journal } = journalOf()
  for (const one of [call(undefined), call(undefined), call(undefined), call('own', '{}', 'other')]) await journal.run(one, ok)
  const records = tieToolCalls(journal.calls(), [trajectoryOf('agent', [asking('x')], [asking('y', 'not JSON'), asking('z')])])
  expect(records.map(({ agent, id, turn }) => [agent, id, turn])).toEqual([
    ['agent', 'x', 0],
    ['agent', 'z', 1],
    ['agent', 'call-3', null],
    ['other', 'own', null],
  ])
})

test('images of the calls are recorded up to a mebibyte for the rollout', async () => {
  const { journal } = journalOf()
  const image = (length: number) => ({ mimeType: 'image/png' as const, data: 'A'.repeat(length) })
  const pictures = [image(700_000), image(400_000), image(348_576), image(4)]
  for (const [index, picture] of pictures.entries())
    await journal.run(call(`${index}`), async () => ({ content: 'seen', isError: false, images: [picture] }))
  expect(journal.calls().map(({ content, images }) => [content, images?.[0]?.data.length])).toEqual([
    ['seen', 700_000],
    ['seen', undefined],
    ['seen', 348_576],
    ['seen', undefined],
  ])
})

test('pictures of the desktop take no room of the images of calls, nor these of them', async () => {
  const { journal } = journalOf()
  const image = (length: number) => ({ mimeType: 'image/png' as const, data: 'A'.repeat(length) })
  const frame = (length: number) => ({ ...image(length), shows: 'desktop' as const })
  for (const images of [[frame(2 ** 20)], [image(4), frame(4)], [image(2 ** 20 - 4)]])
    await journal.run(call(undefined), async () => ({ content: 'seen', isError: false, images }))
  expect(journal.calls().map(({ images }) => images?.map(({ data }) => data.length))).toEqual([[2 ** 20], [4], [2 ** 20 - 4]])
})

test('a failing call is recorded with its message and rejects with its error', async () => {
  const { journal } = journalOf()
  await expect(journal.run(call('x'), async () => Promise.reject(new Error('lost')))).rejects.toThrow('lost')
  await journal.run(call('y'), async () => ({ content: 'no such page', isError: true }))
  expect(journal.calls().map(({ content, isError }) => [content, isError])).toEqual([
    ['lost', true],
    ['no such page', true],
  ])
  expect(journal.counts()).toEqual({ calls: 2, errors: 2, functions: 0 })
})

test('an abort ends a call that does not heed it, and refuses later ones unrecorded', async () => {
  const stop = new AbortController()
  const { journal } = journalOf({ signal: stop.signal })
  const deaf = journal.run(call('x'), () => new Promise(() => {}))
  stop.abort(new Error('out of time'))
  await expect(deaf).rejects.toThrow('out of time')
  await expect(journal.run(call('y'), ok)).rejects.toThrow('out of time')
  expect(journal.calls()).toMatchObject([{ id: 'x', content: 'out of time', isError: true }])
})

test('a call past the budget is refused, told of, and not run', async () => {
  const { journal, limits } = journalOf({ maxToolCalls: 0 })
  let ran = false
  const past = journal.run(call('x'), async () => {
    ran = true
    return ok()
  })
  await expect(past).rejects.toMatchObject({ code: 'AGENT_LIMIT', details: { stopReason: 'tool-call-limit' } })
  expect([ran, limits.length, journal.counts().calls]).toEqual([false, 1, 0])
})

test('a call that never ended is recorded as one that did not', async () => {
  const { journal } = journalOf()
  void journal.run(call('x'), () => new Promise(() => {}))
  expect(journal.calls()).toMatchObject([{ isError: true, content: 'The rollout ended before this call did.' }])
})
