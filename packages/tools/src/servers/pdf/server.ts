import { z } from 'zod'
import { filePath, listSupportedFormats, offsetOf, password, toAnswer } from '../../documents/document-tool.ts'
import { defineTool, type ToolServer } from '../../tool-server.ts'
import { pdfPages, readPdf } from './read-pdf.ts'

const output = pdfPages.extend({ isPaginated: z.boolean() })

const convertDocumentToMarkdown = defineTool({
  name: 'convert_document_to_markdown',
  description: 'Reads a PDF as Markdown, page by page, with the values of its form fields. Scanned pages have no text.',
  input: z.object({
    file_path: filePath,
    password,
    paginate: z.boolean().default(false).describe('Writes a line with its number above each page.'),
    offset: offsetOf('pages'),
    limit: z.int().min(1).max(500).default(50).describe('At most this many pages; an answer also ends at 40,000 characters.'),
  }),
  output,
  async call({ file_path, password, paginate, offset, limit }, context) {
    return { ...(await readPdf(file_path, { offset, limit, password: password ?? null }, context)), isPaginated: paginate }
  },
  toText(answer) {
    const pages = answer.parts.map((part, index) => (answer.isPaginated ? `--- page ${answer.offset + index + 1} ---\n\n${part}` : part))
    return toAnswer(
      answer,
      'Pages',
      pages
        .map((page) => page.trim())
        .join('\n\n')
        .trim(),
    )
  },
})

export const pdfServer: ToolServer = {
  name: 'documents-pdf-server',
  scope: 'files',
  description: 'Reads PDF documents as Markdown.',
  needs: [],
  tools: [convertDocumentToMarkdown, listSupportedFormats({ '.pdf': 'PDF documents with text; scans need a tool for images' })],
}
