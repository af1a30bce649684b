import { expect, test } from 'vitest'
import { buildZip } from '../../testing/build-zip.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { pptx, pptxFiles, shape, slideChart, slideGroup, slideTable } from '../../testing/office-files.ts'
import { openFileContext, readFile } from '../../testing/read-file.ts'
import { pptxServer } from './server.ts'

const read = (bytes: Uint8Array, settings = {}, path?: string) => readFile(pptxServer, bytes, settings, path)
const deck = pptx([
  { shapes: shape('Title 1', 'Quarterly results') + shape('Body', 'Revenue rose to 12 M &amp; more'), note: 'Speaker says hello' },
  {
    shapes:
      slideTable([
        ['Fish', 'Kg'],
        ['Cod', '42'],
      ]) + slideGroup(shape('Inner', 'inside a group')),
  },
  { shapes: slideChart },
])

describeToolServer({
  server: pptxServer,
  examples: { extract_pptx_content: { file_path: 'file' }, list_supported_formats: {} },
  open: (overrides) => openFileContext({ file: deck }, overrides),
})

test('titles, text, tables, groups, charts and notes are read in the order of the presentation', async () => {
  expect((await read(deck)).text).toBe(
    [
      '# Slide 1: Quarterly results',
      'Revenue rose to 12 M & more',
      'Notes: Speaker says hello',
      '# Slide 2',
      '| Fish | Kg |\n| --- | --- |\n| Cod | 42 |',
      'inside a group',
      '# Slide 3',
      'Chart (barChart):\n|  | Q1 |\n| --- | --- |\n| East | 19.2 |\n| West | 21.4 |',
      'Images in the file: ppt/media/image1.png (4 bytes)',
    ].join('\n\n'),
  )
})

test('what is not wanted is left out', async () => {
  const { text } = await read(deck, { output_format: 'text', extract_notes: false, extract_images: false })
  expect(text).toContain('Slide 1: Quarterly results\n\nRevenue rose to 12 M & more\n\nSlide 2\n\nFish\tKg\nCod\t42')
  expect(text).not.toContain('Speaker')
})

test('slides come in pages that say how to continue', async () => {
  const first = await read(deck, { limit: 2 })
  expect(first.text).toContain('Outline:\n1. Quarterly results\n2. \n3. ')
  expect(first.text).toMatch(/\[Slides 1 to 2 of 3; continue with offset 2\.\]$/)
  expect((await read(deck, { offset: 2 })).text).toMatch(/^# Slide 3\n/)
  await expect(read(deck, { offset: 3 }, 'a.pptx')).rejects.toThrow('Offset 3 is behind the end of "a.pptx", which has 3 slides.')
})

test('a slide that is hidden is said to be', async () => {
  const files = pptxFiles([{ shapes: shape('Title', 'first') }, { shapes: shape('Title', 'second') }])
  // Slides are stored in the reverse order.
  const hidden = { ...files, 'ppt/slides/slide1.xml': String(files['ppt/slides/slide1.xml']).replace('<p:sld ', '<p:sld show="0" ') }
  expect((await read(buildZip(hidden), { extract_images: false })).text).toBe('# Slide 1: first\n\n# Slide 2 (hidden): second')
})

test('a presentation that embeds a document is a presentation', async () => {
  const files = { ...pptxFiles([{ shapes: shape('Title', 'words') }]), 'ppt/embeddings/word/document.xml': '<w:document/>' }
  expect((await read(buildZip(files))).text).toContain('# Slide 1: words')
})

test('what cannot be read says why', async () => {
  await expect(read(Buffer.alloc(0))).rejects.toThrow('is empty')
  await expect(read(pptx([{ shapes: '' }]).subarray(0, 300))).rejects.toThrow(/damaged|no Office file/)
  await expect(read(pptx([{ shapes: '<p:sp></p:nvSpPr' }]))).rejects.toThrow(/could not be read as PPTX: .+ It is damaged/)
})
