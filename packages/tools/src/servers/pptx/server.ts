import { z } from 'zod'
import {
  describeImages,
  extractImages,
  filePath,
  imageFiles,
  listSupportedFormats,
  offsetOf,
  password,
  placeFields,
  readOfficeDocument,
  toAnswer,
} from '../../documents/document-tool.ts'
import { defineTool, outputFormat, type ToolServer } from '../../tool-server.ts'

const output = z.object({
  ...placeFields,
  parts: z.array(z.string()),
  outline: z.array(z.string()),
  images: imageFiles,
})
type Output = z.output<typeof output>

const extractPptxContent = defineTool({
  name: 'extract_pptx_content',
  description:
    'Reads a presentation (.pptx, and by LibreOffice .ppt and .odp) as Markdown: titles, text, tables, numbers of charts, groups and speaker notes, slide by slide.',
  input: z.object({
    file_path: filePath,
    password,
    output_format: outputFormat,
    extract_images: extractImages,
    extract_notes: z.boolean().default(true).describe('Includes the notes of the speaker.'),
    include_structure: z.boolean().default(true).describe('Lists the titles of a presentation that does not fit one answer.'),
    offset: offsetOf('slides'),
    limit: z.int().min(1).max(500).default(50).describe('At most this many slides; a page also ends at 40,000 characters.'),
  }),
  output,
  async call(input, context) {
    const options = {
      password: input.password ?? null,
      plain: input.output_format === 'text',
      images: input.extract_images,
      notes: input.extract_notes,
      outline: input.include_structure,
      offset: input.offset,
      limit: input.limit,
      maxCharacters: 40_000,
    }
    const document = await readOfficeDocument(input.file_path, 'pptx', import.meta.url, options, context)
    return output.parse({ ...document, format: input.output_format })
  },
  toText(answer) {
    const isFirst = answer.offset === 0
    const outline = isFirst && answer.nextOffset !== null ? outlineText(answer) : ''
    const parts = [outline, ...answer.parts, isFirst ? describeImages(answer.images) : ''].filter((part) => part !== '')
    return toAnswer(answer, 'Slides', parts.join('\n\n'))
  },
})

function outlineText({ outline }: Output): string {
  return outline.length === 0 ? '' : `Outline:\n${outline.map((title, index) => `${index + 1}. ${title}`).join('\n')}`
}

export const pptxServer: ToolServer = {
  name: 'documents-pptx-server',
  scope: 'files',
  description: 'Reads PowerPoint presentations, with notes, tables and charts.',
  needs: [],
  tools: [
    extractPptxContent,
    listSupportedFormats({
      '.pptx': 'PowerPoint presentations since 2007; .pptm and .ppsx too',
      '.ppt': 'PowerPoint presentations of 97 to 2003, by LibreOffice',
      '.odp': 'OpenDocument presentations, by LibreOffice',
    }),
  ],
}
