import { extname } from 'node:path'
import { z } from 'zod'
import { filePath, listSupportedFormats, offsetOf, placeFields, readDocument, toAnswer } from '../../documents/document-tool.ts'
import { fenced } from '../../documents/markdown.ts'
import { defineTool, outputFormat, type ToolServer } from '../../tool-server.ts'

/** Markdown's names for languages of files that are shown as code. */
const languages: Readonly<Record<string, string>> = {
  '.json': 'json',
  '.jsonl': 'json',
  '.xml': 'xml',
  '.html': 'html',
  '.htm': 'html',
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.toml': 'toml',
  '.ini': 'ini',
  '.csv': 'csv',
  '.py': 'python',
  '.js': 'javascript',
  '.ts': 'typescript',
  '.sh': 'bash',
  '.sql': 'sql',
  '.css': 'css',
  '.tex': 'latex',
}

const output = z.object({
  ...placeFields,
  content: z.string(),
  encoding: z.string(),
  lines: z.int(),
  language: z.string().nullable(),
})

const extractTextContent = defineTool({
  name: 'extract_text_content',
  description:
    'Reads a text file of any encoding: .txt, .md, .json, .xml, .log, source code and other plain text. Long files come in pages.',
  input: z.object({
    file_path: filePath,
    output_format: outputFormat,
    encoding: z.string().min(1).max(40).nullish().describe('Such as "utf-8" or "windows-1252"; detected where absent.'),
    max_content_length: z.int().min(1).max(200_000).nullish().describe('At most this many characters in one answer; 20,000 where absent.'),
    offset: offsetOf('characters'),
  }),
  output,
  async call({ file_path, output_format, encoding, max_content_length, offset }, context) {
    const options = { encoding: encoding ?? null, offset, limit: max_content_length ?? 20_000 }
    const document = await readDocument(file_path, import.meta.url, options, context)
    return output.parse({ ...document, format: output_format, language: languages[extname(file_path).toLowerCase()] ?? null })
  },
  toText(answer) {
    if (answer.format !== 'markdown' || answer.language === null) return toAnswer(answer, 'Characters', answer.content)
    return toAnswer(answer, 'Characters', fenced(answer.content, answer.language))
  },
})

export const txtServer: ToolServer = {
  name: 'documents-txt-server',
  scope: 'files',
  description: 'Reads text files in any encoding.',
  needs: [],
  tools: [
    extractTextContent,
    listSupportedFormats({
      '.txt': 'plain text, and .log, .rst, .srt and the like',
      '.md': 'Markdown',
      '.json': 'JSON and .jsonl, as text',
      '.xml': 'XML and HTML, as text',
      '.yaml': 'YAML, TOML and INI, as text',
      '.py': 'source code of any language',
    }),
  ],
}
