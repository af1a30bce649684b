import { deflateSync } from 'node:zlib'
import type { ParserJail } from '@aworld-train/core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pngChunk } from '../../desktop/to-png.ts'
import { openParserJail } from '../../sandbox/index.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { drawWords } from '../../testing/draw-words.ts'
import { openModelContext } from '../../testing/model-context.ts'
import { json } from '../../testing/stand-in.ts'
import { openFileSandbox, openTestParsers } from '../../testing/tier.ts'
import { callServerTool } from '../../testing/tool-context.ts'
import type { ServerToolContext } from '../../tool-server.ts'
import { imageServer } from './server.ts'

const words = 'TEN TALL TALENT'

let parsers: ParserJail
let sign: Buffer
beforeAll(async () => {
  parsers = await openTestParsers()
  sign = await drawWords(words).png().toBuffer()
})
afterAll(() => parsers.close())

/** A context whose workspace has an image, and a model that answers with the type of the image that it got. */
async function open(bytes: Buffer, overrides: Partial<ServerToolContext> = {}) {
  const context = await openModelContext(
    'image',
    ({ messages }) => {
      const [question, image] = messages[1]!.content as unknown as [
        { readonly text: string },
        { readonly image_url: { readonly url: string } },
      ]
      if (question.text === 'never') return null
      return json({ choices: [{ message: { content: `A picture of the type ${image.image_url.url.split(';', 1)[0]}.` } }] })
    },
    { parsers, ...overrides },
    openFileSandbox,
  )
  await context.workspace.put('image', bytes, new AbortController().signal)
  return context
}

async function call(tool: string, bytes: Buffer, input: object = {}, overrides: Partial<ServerToolContext> = {}) {
  const context = await open(bytes, overrides)
  try {
    return { ...(await callServerTool(imageServer, tool, { file_path: 'image', ...input }, context)), requests: context.requests }
  } finally {
    await context.close()
  }
}

const input = { file_path: 'image' }
describeToolServer({
  server: imageServer,
  examples: { extract_text_ocr: input, analyze_image_ai: input, get_image_metadata: input },
  open: (overrides) => open(sign, overrides),
  slow: { tool: 'analyze_image_ai', input: { ...input, task: 'never' } },
})

/** A PNG that says how large it is, and has one row of its pixels. */
function claims(width: number, height: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 8
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([
    signature,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(Buffer.alloc(width + 1))),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

test('text is read, also from an image that a camera turned, and an image without any says so', async () => {
  const turned = await sharp(sign).rotate(270).withMetadata({ orientation: 6 }).jpeg({ quality: 95 }).toBuffer()
  for (const [bytes, preprocess] of [
    [sign, true],
    [turned, false],
  ] as const)
    expect((await call('extract_text_ocr', bytes, { preprocess })).text).toMatch(
      new RegExp(`^${words}\\n\\n\\[Confidence \\d+ of 100\\.\\]$`),
    )
  const blank = await sharp({ create: { width: 300, height: 100, channels: 3, background: 'white' } })
    .png()
    .toBuffer()
  expect((await call('extract_text_ocr', blank)).text).toBe('No text was found in the image.')
})

test('the facts of an image are told', async () => {
  expect((await call('get_image_metadata', sign)).text).toMatch(/^png, \d+ x \d+ pixels\n3 channels of srgb(\n150 pixels per inch)?$/)
  const frames = await Promise.all(
    ['red', 'blue'].map((background) =>
      sharp({ create: { width: 8, height: 6, channels: 3, background } })
        .png()
        .toBuffer(),
    ),
  )
  const animated = await sharp(frames, { join: { animated: true } })
    .gif()
    .toBuffer()
  expect((await call('get_image_metadata', animated)).text).toMatch(/^gif, 8 x 6 pixels\n[\s\S]*\n2 pages$/)
})

test('a model gets a small image as it is, and of a large or strange one a copy that it can take', async () => {
  const { text, requests } = await call('analyze_image_ai', sign, { task: 'When?' })
  expect(text).toBe('A picture of the type data:image/png.')
  expect(requests[0]!.messages[1]!.content).toEqual([
    { type: 'text', text: 'When?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${sign.toString('base64')}` } },
  ])
  const large = await sharp({ create: { width: 5_000, height: 100, channels: 3, background: 'teal' } })
    .tiff()
    .toBuffer()
  const answer = await call('analyze_image_ai', large)
  expect(answer.text).toBe('A picture of the type data:image/jpeg.')
  const [, part] = answer.requests[0]!.messages[1]!.content as unknown as [object, { readonly image_url: { readonly url: string } }]
  const { width, height } = await sharp(Buffer.from(part.image_url.url.split(',')[1]!, 'base64')).metadata()
  expect([width, height]).toEqual([2_048, 41])
})

test.each([
  ['a PNG of 60,000 x 60,000', () => claims(60_000, 60_000), {}, '"image" has 60000 x 60000 pixels; at most 50 million are read.'],
  ['a PNG that ends early', () => claims(3_000, 3_000), {}, '"image" could not be read as an image: '],
  ['text', () => Buffer.from('words'), {}, '"image" could not be read as an image: '],
  ['nothing', () => Buffer.alloc(0), {}, '"image" is empty: it has 0 bytes.'],
  ['a language without data', () => sign, { language: 'deu' }, 'The environment has no language data for "deu" (@tesseract.js-data/deu)'],
])('%s is an error that the model reads', async (_, bytes, settings, message) => {
  const error = await call('extract_text_ocr', bytes(), settings).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'ToolError', message: expect.stringContaining(message) })
})

test('without namespaces of the kernel no image is opened, and the answer says what is missing', async () => {
  const outside = await openParserJail({ isolation: 'node' })
  await expect(call('get_image_metadata', sign, {}, { parsers: outside })).rejects.toMatchObject({
    name: 'ToolError',
    message: expect.stringMatching(/^Files of this kind are read in bubblewrap only, which this environment has not: /),
  })
  // A process without native addons stands for an installation without them.
  await expect(call('get_image_metadata', sign, {}, { parsers: { ...outside, parseNative: outside.parse } })).rejects.toThrow(
    'Images are read by sharp, which the environment cannot load; its operator runs: npm install sharp',
  )
  await outside.close()
})
