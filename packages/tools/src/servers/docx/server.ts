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
  content: z.string(),
  outline: z.array(z.object({ level: z.int(), heading: z.string(), offset: z.int() })),
  headers: z.array(z.string()),
  footers: z.array(z.string()),
  images: imageFiles,
})
type Output = z.output<typeof output>

const extractDocxContent = defineTool({
  name: 'extract_docx_content',
  description:
    'Reads a Word document (.docx, and by LibreOffice .doc, .odt and .rtf) or a book (.epub) as Markdown: headings, lists, tables, links, footnotes, comments, headers and footers. Long documents come in pages.',
  input: z.object({
    file_path: filePath,
    password,
    output_format: outputFormat,
    extract_images: extractImages,
    extract_tables: z.boolean().default(true).describe('Includes tables.'),
    extract_headers_footers: z.boolean().default(true).describe('Includes headers and footers.'),
    include_structure: z
      .boolean()
      .default(true)
      .describe('Lists the headings of a document that does not fit one answer, with their offsets.'),
    offset: offsetOf('characters'),
    limit: z.int().min(1).max(200_000).default(20_000).describe('At most this many characters in one answer.'),
  }),
  output,
  async call(input, context) {
    const options = {
      password: input.password ?? null,
      plain: input.output_format === 'text',
      images: input.extract_images,
      tables: input.extract_tables,
      headersFooters: input.extract_headers_footers,
      outline: input.include_structure,
      offset: input.offset,
      limit: input.limit,
    }
    const document = await readOfficeDocument(input.file_path, 'docx', import.meta.url, options, context)
    return output.parse({ ...document, format: input.output_format })
  },
  toText(answer) {
    const isFirst = answer.offset === 0
    const facts = isFirst ? [...namesOf('Header', answer.headers), ...namesOf('Footer', answer.footers), describeImages(answer.images)] : []
    const outline = isFirst && answer.nextOffset !== null ? outlineText(answer) : ''
    const parts = [outline, answer.content, ...facts].filter((part) => part !== '')
    return toAnswer(answer, 'Characters', parts.join('\n\n'))
  },
})

function namesOf(label: string, texts: readonly string[]): string[] {
  return texts.map((text) => `${label}: ${text}`)
}

function outlineText({ outline }: Output): string {
  const lines = outline.map(({ level, heading, offset }) => `${'  '.repeat(level - 1)}- ${heading} (offset ${offset})`)
  return lines.length === 0 ? '' : `Outline:\n${lines.join('\n')}`
}

export const docxServer: ToolServer = {
  name: 'documents-docx-server',
  scope: 'files',
  description: 'Reads Word documents.',
  needs: [],
  tools: [
    extractDocxContent,
    listSupportedFormats({
      '.docx': 'Word documents since 2007; .docm and .dotx too',
      '.doc': 'Word documents of 97 to 2003, by LibreOffice',
      '.odt': 'OpenDocument texts, by LibreOffice',
      '.rtf': 'Rich Text, by LibreOffice',
      '.epub': 'books without protection against copying',
    }),
  ],
}
