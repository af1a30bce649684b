import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { writeFormat } from './format-fixtures.test-support.ts'
import { fixtureConversations, formatVariants, renderingDigest, variantRenderer } from './format-renderings.test-support.ts'
import { createTokenizer } from './tokenizer.ts'
import { readTokenizerFiles } from './tokenizer-files.ts'

/** Digests of the text and ids from transformers, by variant and conversation, with and without the generation prompt. */
type Goldens = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
const goldens = JSON.parse(await readFile(new URL('../fixtures/goldens/formats.json', import.meta.url), 'utf8')) as Goldens
const conversations = fixtureConversations()

test('every variant and conversation has its golden rendering', () => {
  expect(Object.keys(goldens)).toEqual(formatVariants.map(({ name }) => name))
  for (const golden of Object.values(goldens)) expect(Object.keys(golden)).toEqual([...conversations.keys()])
})

test.each(formatVariants)('text and ids are those of transformers: $name', async (variant) => {
  await using folder = await writeFormat(variant.format)
  const { tokenizerText, tokenizerConfig } = await readTokenizerFiles(folder.directory)
  const tokenizer = createTokenizer(tokenizerText, tokenizerConfig)
  const render = variantRenderer(variant)
  const renderings = Object.fromEntries(
    Array.from(conversations, ([name, conversation]) => [
      name,
      [true, false].map((prompt) => {
        const text = render(conversation, prompt)
        return renderingDigest(text, text === null ? [] : tokenizer.encode(text))
      }),
    ]),
  )
  expect(renderings).toEqual(goldens[variant.name])
})
