// @module-tag quick
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeFormat } from '../../packages/chat/src/format-fixtures.test-support.ts'
import {
  type FormatVariant,
  fixtureConversations,
  formatVariants,
  renderingDigest,
  variantRenderer,
} from '../../packages/chat/src/format-renderings.test-support.ts'
import { createTokenizer } from '../../packages/chat/src/tokenizer.ts'
import { readTokenizerFiles } from '../../packages/chat/src/tokenizer-files.ts'
import { pythonEnvironment } from '../support/python-environment.ts'
import { generateConversations } from './rendering/generate-conversations.ts'
import { harmonyConversations, mistralConversations } from './rendering/vendor-conversations.ts'

interface Rendering {
  readonly text?: string
  readonly ids?: readonly number[]
  readonly error?: string
}

const here = (file: string) => fileURLToPath(new URL(`rendering/${file}`, import.meta.url))
let python: string
let directory: string

beforeAll(async () => {
  python = await pythonEnvironment({ name: 'rendering', requirements: here('requirements.txt') })
  directory = await mkdtemp(join(tmpdir(), 'rendering-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Asks the oracle; `request` is JSON text, so that numbers keep their spelling. */
async function ask(request: string): Promise<Rendering[]> {
  const [requestPath, answerPath] = [join(directory, 'request.json'), join(directory, 'answer.json')]
  await writeFile(requestPath, request)
  await promisify(execFile)(python, [here('oracle.py'), requestPath, answerPath], { timeout: 300_000 })
  return JSON.parse(await readFile(answerPath, 'utf8')) as Rendering[]
}

const jsonObject = (members: Iterable<readonly [string, string]>) =>
  `{${Array.from(members, ([name, text]) => `${JSON.stringify(name)}: ${text}`).join(', ')}}`

interface Compared {
  readonly variant: FormatVariant
  readonly conversation: string
  readonly prompt: boolean
  readonly expected: Rendering
  readonly text: string | null
  readonly ids: readonly number[]
}

/** Renders conversations in every variant, here and with transformers. */
async function compare(conversations: ReadonlyMap<string, string>): Promise<Compared[]> {
  const folders = await Promise.all(formatVariants.map(({ format }) => writeFormat(format)))
  try {
    const models = formatVariants.map(({ arguments: templateArguments }, index) => ({
      directory: folders[index]!.directory,
      arguments: templateArguments,
    }))
    const parts: [string, string][] = [
      ['kind', '"transformers"'],
      ['models', JSON.stringify(models)],
      ['conversations', jsonObject(conversations)],
    ]
    const answers = (await ask(jsonObject(parts))).values()
    const compared: Compared[] = []
    for (const [index, variant] of formatVariants.entries()) {
      const { tokenizerText, tokenizerConfig } = await readTokenizerFiles(folders[index]!.directory)
      const tokenizer = createTokenizer(tokenizerText, tokenizerConfig)
      const render = variantRenderer(variant)
      for (const [conversation, json] of conversations) {
        for (const prompt of [true, false]) {
          const expected = answers.next().value!
          const text = render(json, prompt)
          compared.push({ variant, conversation, prompt, expected, text, ids: text === null ? [] : [...tokenizer.encode(text)] })
        }
      }
    }
    return compared
  } finally {
    for (const folder of folders) await folder[Symbol.asyncDispose]()
  }
}

function expectEqual(compared: readonly Compared[]): void {
  expect(compared.flatMap(difference).slice(0, 10)).toEqual([])
}

/** Says in a line where a rendering differs; both refusing is equal. */
function difference({ variant, conversation, prompt, expected, text, ids }: Compared): string[] {
  const where = `${variant.name} / ${conversation} / ${prompt ? 'prompt' : 'history'}`
  if (text === null || expected.text === undefined) {
    if (text === (expected.text ?? null)) return []
    return [`${where}: ${text === null ? 'refused here' : `refused there: ${expected.error}`}`]
  }
  if (text !== expected.text) return [`${where}: ${firstDifference(text, expected.text)}`]
  return ids.join() === expected.ids?.join() ? [] : [`${where}: other ids: ${firstDifference(ids, expected.ids ?? [])}`]
}

function expectText(ours: string | null, theirs: string | undefined): void {
  if (ours !== theirs) expect.fail(firstDifference(ours ?? '', theirs ?? ''))
}

function firstDifference<T extends string | readonly number[]>(ours: T, theirs: T): string {
  let at = 0
  while (ours[at] === theirs[at]) at += 1
  const part = (whole: T) => JSON.stringify(whole.slice(Math.max(0, at - 20), at + 20))
  return `at ${at} ${part(ours)} for ${part(theirs)}`
}

test('the conversations of the fixtures are rendered and encoded as transformers does, and the goldens say so', async () => {
  const conversations = fixtureConversations()
  const compared = await compare(conversations)
  expectEqual(compared)
  const goldens: Record<string, Record<string, string[]>> = {}
  for (const { variant, conversation, expected } of compared) {
    goldens[variant.name] ??= {}
    const digests = goldens[variant.name]!
    digests[conversation] = [...(digests[conversation] ?? []), renderingDigest(expected.text ?? null, expected.ids ?? [])]
  }
  const file = '../../packages/chat/fixtures/goldens/formats.json'
  await expect(`${JSON.stringify(goldens, null, 1)}\n`).toMatchFileSnapshot(file)
  expect(compared.filter(({ text }) => text !== null).length).toBeGreaterThan(2000)
})

test.each([1, 2, 3])('generated conversations are rendered and encoded as transformers does: seed %i', async (seed) => {
  const compared = await compare(new Map(Object.entries(generateConversations(seed, 60))))
  expectEqual(compared)
  expect(compared.filter(({ text }) => text !== null).length).toBeGreaterThan(1000)
})

describe('the vendors’ own encoders', () => {
  const variant = (name: string) => formatVariants.find((one) => one.name === name)!

  test('mistral-common writes what the templates of Mistral write', async () => {
    const versions = ['v3', 'v7', 'v11', 'v13']
    const answers = (await ask(JSON.stringify({ kind: 'mistral', versions, conversations: mistralConversations }))).values()
    for (const version of versions) {
      const render = variantRenderer(variant(`mistral-${version}`))
      for (const conversation of mistralConversations) {
        const { text, error } = answers.next().value!
        expect(error).toBeUndefined()
        expectText(render(JSON.stringify(conversation), true), text)
      }
    }
  })

  test('openai-harmony writes what the template of gpt-oss writes', async () => {
    const answers = await ask(JSON.stringify({ kind: 'harmony', conversations: harmonyConversations }))
    const render = variantRenderer(variant('gpt-oss'))
    for (const [index, conversation] of harmonyConversations.entries()) {
      expect(answers[index]!.error).toBeUndefined()
      expectText(render(JSON.stringify(conversation), true), answers[index]!.text)
    }
  })
})
