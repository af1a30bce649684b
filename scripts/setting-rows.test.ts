import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { settingRows, settingSections, typeText } from './setting-rows.ts'

test.each([
  ['"head" | "tail"', z.enum(['head', 'tail']).default('head')],
  ['integer ≥ 1', z.int().min(1)],
  ['integer', z.int()],
  ['number > 0', z.number().gt(0)],
  ['0 ≤ number ≤ 1', z.number().min(0).max(1)],
  ['0 < number ≤ 1', z.number().gt(0).max(1)],
  ['number ≤ 5', z.number().max(5)],
  [
    'integer ≥ 1',
    z
      .int()
      .min(1)
      .max(2 ** 31 - 1),
  ],
  ['string | null', z.string().nullable().default(null)],
  ['string[]', z.array(z.string())],
  ['("a" | "b")[]', z.array(z.enum(['a', 'b']))],
  ['[number, string]', z.tuple([z.number(), z.string()])],
  ['{ NAME: string }', z.record(z.string(), z.string())],
  ['{ NAME: JSON }', z.record(z.string(), z.json())],
  ['string | { env: string }', z.union([z.string(), z.strictObject({ env: z.string() })])],
  ['"all" | function', z.union([z.literal('all'), z.custom<() => void>((value) => typeof value === 'function')])],
])('prints %s as a person writes it', (text, schema) => {
  expect(typeText(schema)).toBe(text)
})

describe('the rows of a schema', () => {
  const section = z.strictObject({ waitMs: z.int().min(1).default(120_000).describe('Time.'), cert: z.string().describe('File.') })
  const schema = z.strictObject({
    seed: z.int().default(1).describe('Seed.'),
    server: section.describe('The server.'),
    tls: section.nullable().default(null).describe('Or none.'),
    models: z.record(z.string(), z.strictObject({ path: z.string().optional().describe('Folder.') })).describe('Models.'),
  })

  it('have the settings of sections, of sections that may be null, and of what a mapping holds', () => {
    expect(settingRows(schema).map(({ key, type, initial }) => `${key}: ${type} = ${initial}`)).toEqual([
      'seed: `integer` = `1`',
      'server.waitMs: `integer ≥ 1` = `120000` (2 min)',
      'server.cert: `string` = required',
      'tls: section \\| null = `null`',
      'tls.waitMs: `integer ≥ 1` = `120000` (2 min)',
      'tls.cert: `string` = required',
      'models: `{ NAME: … }` = required',
      'models.NAME.path: `string` = none',
    ])
  })

  it('stand in sections, keys at the top first', () => {
    expect(settingSections(schema).map(({ name, meaning, rows }) => [name, meaning, rows.length])).toEqual([
      ['', '', 1],
      ['server', 'The server.', 2],
      ['tls', '', 3],
      ['models', '', 2],
    ])
  })

  it('refuse a setting that says nothing of itself', () => {
    const silent = z.strictObject({ training: z.strictObject({ steps: z.int().default(1) }).describe('The training.') })
    expect(() => settingRows(silent)).toThrow('training.steps has no description; add .describe(…) to its schema')
  })
})
