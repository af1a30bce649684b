import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { TrainError } from '@aworld-train/core'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { toAgentProgram } from './agent-program.ts'
import type { AgentFunction } from './program-types.ts'
import { runOnce } from './run-once.test-support.ts'
import { createScriptedServer } from './scripted-server.test-support.ts'
import { tool } from './tool.ts'

test('a function is one trainable agent that reaches the policy with any OpenAI client', async () => {
  await using server = await createScriptedServer([{ content: 'three' }])
  const solve: AgentFunction = async (task, { baseUrl, apiKey, model, policy, tools }) => {
    expect(policy()).toEqual({ baseUrl, apiKey, model })
    expect(await (await tools()).list()).toEqual([])
    const client = new OpenAI({ baseURL: baseUrl, apiKey })
    const reply = await client.chat.completions.create({ model, messages: [{ role: 'user', content: task.input as string }] })
    return reply.choices[0]!.message.content
  }
  expect(toAgentProgram(solve).agents).toEqual([{ name: 'agent', trainable: true, randomKey: 'prompt' }])
  const result = await runOnce(solve, { baseUrl: server.baseUrl })
  expect(result).toMatchObject({ answer: 'three', messages: [] })
  expect(server.requests[0]!.headers.authorization).toBe('Bearer policy-key')
})

test('a function and a tool read a file of the task by its name', async () => {
  await using server = await createScriptedServer([{ toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }] }, { content: 'done' }])
  const files = [import.meta.filename]
  const text = await readFile(import.meta.filename, 'utf8')
  const read = tool({ name: 'read', parameters: z.object({}), execute: async (_, { file }) => String(await file(basename(files[0]!))) })
  const { messages } = await runOnce(new Agent({ tools: [read] }), { baseUrl: server.baseUrl, files })
  expect(messages).toContainEqual(expect.objectContaining({ role: 'tool', content: text }))
  expect(await runOnce(async (_, { file }) => String(await file(basename(files[0]!))), { files })).toMatchObject({ answer: text })
})

test('declares the tools that were given for it', () => {
  const functionTools = { mcpConfig: { mcpServers: { table: { command: 'node' } } }, mcpServers: ['table'] }
  expect(toAgentProgram(() => 'x', { functionTools }).agents).toEqual([
    { name: 'agent', trainable: true, randomKey: 'prompt', ...functionTools },
  ])
})

test.each([
  ['a text', 'yes', { answer: 'yes', messages: [] }],
  ['null', null, { answer: null, messages: [] }],
  ['an object', { answer: 'yes' }, { answer: 'yes', messages: [] }],
  ['messages', { answer: null, messages: [{ role: 'user', content: 'q' }] }, { answer: null, messages: [{ role: 'user', content: 'q' }] }],
])('takes %s as an answer', async (_, returned, expected) => {
  expect(await runOnce((() => returned) as AgentFunction, {})).toMatchObject(expected)
})

test.each([
  ['undefined', undefined, /returned undefined; return the answer as text/],
  ['a number', 3, /returned number 3/],
  ['another object', { text: 'yes' }, /returned an object \(answer: /],
])('refuses %s as an answer', async (_, returned, message) => {
  await expect(runOnce((() => returned) as never, {})).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    message: expect.stringMatching(message),
  })
})

test('wraps what a function throws, at once or later, and keeps the cause', async () => {
  const cause = new RangeError('broken')
  const atOnce: AgentFunction = () => {
    throw cause
  }
  for (const source of [atOnce, async () => atOnce({} as never, {} as never)]) {
    await expect(runOnce(source, {})).rejects.toMatchObject({ code: 'AGENT_FAILED', message: 'Agent "agent" threw: broken', cause })
  }
})

test('an abort ends a function that ignores its signal', async () => {
  const controller = new AbortController()
  const reason = new TrainError('AGENT_LIMIT', 'time is up')
  const running = runOnce(() => new Promise<string>(() => {}), { signal: controller.signal })
  const rejected = expect(running).rejects.toBe(reason)
  await delay(5)
  controller.abort(reason)
  await rejected
})

test.each([
  ['null', null],
  ['a text', 'agent'],
  ['an object', {}],
])('refuses %s as an agent', (_, source) => {
  expect(() => toAgentProgram(source as never)).toThrow(expect.objectContaining({ code: 'AGENT_INVALID' }))
})
