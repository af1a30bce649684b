import type { AttemptState } from '@aworld-train/core'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { defineState, tool } from './tool.ts'

const call = (name: string, args: object, id: string) => ({ id, name, arguments: JSON.stringify(args) })
const replyWith = (...calls: ReturnType<typeof call>[]) => ({ toolCalls: calls })

/** Two tools that share a basket for each attempt. */
function createShop() {
  const log: string[] = []
  const basket = defineState({
    setup: ({ task, rollout, attempt }) => {
      log.push(`open ${rollout} ${attempt}`)
      return { customer: task.id, items: [] as string[] }
    },
    teardown: ({ items }) => {
      log.push(`close with ${items.join(' ')}`)
    },
  })
  const put = tool({
    name: 'put',
    parameters: z.object({ item: z.string() }),
    state: basket,
    execute: ({ item }, { state, attempt }) => {
      expectTypeOf(state).toEqualTypeOf<{ customer: string; items: string[] }>()
      return `${state.items.push(item)} in attempt ${attempt}`
    },
  })
  const show = tool({ name: 'show', parameters: z.object({}), state: basket, execute: (_, { state }) => state })
  return { log, tools: [put, show] }
}

test('tools with one definition share its state, which an attempt has for itself', async () => {
  const { log, tools } = createShop()
  const agent = new Agent({ tools })
  for (const item of ['fig', 'nut']) {
    await using server = await createScriptedServer([
      replyWith(call('put', { item }, 'a'), call('put', { item }, 'b')),
      replyWith(call('show', {}, 'c')),
      { content: 'done' },
    ])
    const { toolCalls } = await runOnce(agent, { baseUrl: server.baseUrl })
    expect(toolCalls.map(({ content }) => content)).toEqual([
      '1 in attempt 0',
      '2 in attempt 0',
      JSON.stringify({ customer: 'task-1', items: [item, item] }),
    ])
  }
  expect(log).toEqual(['open task-1 0', 'close with fig fig', 'open task-1 0', 'close with nut nut'])
})

test('a state is typed where it is written into the tool', async () => {
  await using server = await createScriptedServer([replyWith(call('next', {}, 'a')), replyWith(call('next', {}, 'b')), { content: 'done' }])
  const ended: number[] = []
  const next = tool({
    name: 'next',
    parameters: z.object({}),
    state: { setup: async ({ task }) => ({ task: task.id, count: 0 }), teardown: ({ count }) => ended.push(count) },
    execute: (_, { state }) => {
      expectTypeOf(state).toEqualTypeOf<{ task: string; count: number }>()
      state.count += 1
      return state.count
    },
  })
  const { toolCalls } = await runOnce(new Agent({ tools: [next] }), { baseUrl: server.baseUrl })
  expect(toolCalls.map(({ content }) => content)).toEqual(['1', '2'])
  expect(ended).toEqual([2])
})

test('a tool without a state has none', async () => {
  await using server = await createScriptedServer([replyWith(call('plain', {}, 'a')), { content: 'done' }])
  const plain = tool({
    name: 'plain',
    parameters: z.object({}),
    execute: (_, { state }) => {
      expectTypeOf(state).toEqualTypeOf<undefined>()
      return state === undefined
    },
  })
  expect((await runOnce(new Agent({ tools: [plain] }), { baseUrl: server.baseUrl })).toolCalls[0]?.content).toBe('true')
})

test('an attempt whose tools are not called sets nothing up', async () => {
  await using server = await createScriptedServer([{ content: 'done' }])
  const { log, tools } = createShop()
  await runOnce(new Agent({ tools }), { baseUrl: server.baseUrl })
  expect(log).toEqual([])
})

test('a failed set-up ends the run; it is no answer of the tool', async () => {
  await using server = await createScriptedServer([replyWith(call('broken', {}, 'a')), { content: 'done' }])
  const state: AttemptState<string> = { setup: () => Promise.reject(new Error('no database')) }
  const broken = tool({ name: 'broken', parameters: z.object({}), state, execute: () => 'never' })
  await expect(runOnce(new Agent({ tools: [broken] }), { baseUrl: server.baseUrl })).rejects.toMatchObject({
    code: 'ENVIRONMENT_START_FAILED',
    message: expect.stringContaining('no database'),
  })
  expect(server.requests).toHaveLength(1)
})

test('a function agent has states too', async () => {
  const { log, tools } = createShop()
  const basket = tools[0]!.state as AttemptState<{ items: string[] }>
  const { answer } = await runOnce(async (_, { state }) => {
    const { items } = await state(basket)
    items.push('fig')
    return (await state(basket)).items.join()
  }, {})
  expect(answer).toBe('fig')
  expect(log).toEqual(['open task-1 0', 'close with fig'])
})

test.each([
  ['a text', 'shop'],
  ['an object without setup', { teardown: () => {} }],
])('refuses %s as a state', (_, state) => {
  const options = { name: 'echo', parameters: z.object({}), execute: () => '', state }
  expect(() => tool(options as never)).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining('setup') }),
  )
})
