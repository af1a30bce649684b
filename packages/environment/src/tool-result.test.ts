import { desktopFrameKey } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { toToolResult } from './tool-result.ts'

const image = (mimeType: string, data: string) => ({ type: 'image' as const, mimeType, data })
const text = (content: string) => ({ type: 'text' as const, text: content })

test('images are named in the text, and kept beside it', () => {
  const result = toToolResult('look', { content: [text('here'), image('image/png', 'AAAA'), image('image/webp', 'AAA=')] }, 100)
  expect(result).toEqual({
    content: 'here\n[image image/png, 3 bytes]\n[image image/webp, 3 bytes]',
    isError: false,
    images: [
      { mimeType: 'image/png', data: 'AAAA' },
      { mimeType: 'image/webp', data: 'AAA=' },
    ],
  })
})

test.each([
  ['SVG, which can hold scripts', image('image/svg+xml', 'AAAA')],
  ['a page', image('text/html', 'AAAA')],
  ['what is no base64', image('image/png', 'AAAA" onload="x')],
  ['20 megabytes', image('image/png', 'A'.repeat(20_000_000))],
])('of an image that is %s only the name is passed on', (_, block) => {
  const result = toToolResult('look', { content: [block] }, 2 ** 20)
  expect(result).toEqual({ content: expect.stringMatching(/^\[image [^\n]+ bytes\]$/), isError: false })
})

test.each([
  [100, 4, ['picture', 'desktop']],
  [100, 8, ['picture']],
  [108, 100, ['desktop']],
])('of an image of %i characters and a still of %i, those are kept that fit into 104', (length, frameLength, kept) => {
  const frame = { mimeType: 'image/png', data: 'A'.repeat(frameLength), shows: 'desktop' }
  const picture = image('image/png', 'A'.repeat(length))
  const { images = [] } = toToolResult('look', { content: [picture], _meta: { [desktopFrameKey]: frame } }, 104)
  expect(images.map(({ shows }) => shows ?? 'picture')).toEqual(kept)
})

test.each([
  ['of the desktop is kept, and not named', { mimeType: 'image/png', data: 'AAAA', shows: 'desktop' }, true],
  ['that is no picture is left out', { mimeType: 'text/html', data: 'AAAA' }, false],
  ['that is a text is left out', 'AAAA', false],
])('a still %s', (_, frame, isKept) => {
  const result = toToolResult('look', { content: [text('here')], _meta: { [desktopFrameKey]: frame } }, 100)
  expect(result).toEqual({ content: 'here', isError: false, ...(isKept && { images: [frame] }) })
})
