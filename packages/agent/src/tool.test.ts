import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { type ToolContext, tool } from './tool.ts'

const context = { signal: new AbortController().signal, agent: 'a', rollout: 'r', callId: 'c' } as ToolContext

test('types the arguments by the schema and describes them as JSON Schema', async () => {
  const search = tool({
    name: 'search',
    description: 'Finds pages.',
    parameters: z.object({
      query: z.string().describe('What to find'),
      limit: z.int().min(1).default(3),
      sort: z.enum(['new', 'old']).optional(),
    }),
    execute: (args, { signal }) => {
      expectTypeOf(args).toEqualTypeOf<{ query: string; limit: number; sort?: 'new' | 'old' | undefined }>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      return { found: args.query, limit: args.limit }
    },
  })
  expect(search.definition).toEqual({
    name: 'search',
    description: 'Finds pages.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What to find' },
        limit: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 3 },
        sort: { type: 'string', enum: ['new', 'old'] },
      },
      required: ['query'],
    },
  })
  expect(await search.invoke({ query: 'tin' }, context)).toEqual({ content: '{"found":"tin","limit":3}', isError: false })
  expect(await search.invoke({ limit: 0 }, context)).toMatchObject({
    isError: true,
    content: expect.stringMatching(/"query": .*; "limit": /),
  })
})

test.each([
  ['a text', 'plain', 'plain', false],
  ['nothing', undefined, '', false],
  ['a number', 7, '7', false],
  ['null', null, 'null', false],
  ['a result', { content: 'bad', isError: true }, 'bad', true],
  ['a larger object', { content: 'x', isError: true, more: 1 }, '{"content":"x","isError":true,"more":1}', false],
])('gives the model %s', async (_, returned, content, isError) => {
  const echo = tool({ name: 'echo', parameters: z.object({}), execute: async () => returned })
  expect(await echo.invoke({}, context)).toEqual({ content, isError })
})

test('a value that JSON cannot hold is an error of the tool', async () => {
  const echo = tool({ name: 'echo', parameters: z.object({}), execute: () => 10n })
  expect(await echo.invoke({}, context)).toMatchObject({ isError: true, content: expect.stringContaining('BigInt') })
})

test.each([
  ['an empty name', { name: '' }, /the name is an empty string/],
  ['a name with spaces', { name: 'my tool' }, /the name is "my tool"; use 1 to 64 letters/],
  ['a JSON Schema', { parameters: { type: 'object' } }, /parameters is an object; use a Zod 4 schema/],
  ['a schema that is no object', { parameters: z.string() }, /parameters must describe an object/],
  ['no function', { execute: undefined }, /has no execute function/],
])('refuses %s', (_, change, message) => {
  const options = { name: 'echo', parameters: z.object({}), execute: () => '', ...change }
  expect(() => tool(options as never)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(message) }))
})

test('a tool that throws names the file and line that threw, beside what the model sees', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-tool-'))
  try {
    const file = join(folder, 'table.ts')
    await writeFile(file, `export function look(name: string): string {\n  throw new RangeError('The table has no ' + name)\n}\n`)
    const { look } = (await import(file)) as { look: (name: string) => string }
    const lookUp = tool({ name: 'look_up', parameters: z.object({ name: z.string() }), execute: ({ name }) => look(name) })
    const result = await lookUp.invoke({ name: 'tin' }, { signal: new AbortController().signal } as never)
    expect(result).toEqual({ content: 'Error: The table has no tin', isError: true, source: `${file}:2` })
  } finally {
    await rm(folder, { recursive: true })
  }
})
