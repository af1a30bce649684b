import { type ParserJail, siblingModule } from '@aworld-train/core'
import { z } from 'zod'
import { answerFormat, defineTool, type ServerTool, type ServerToolContext } from '../tool-server.ts'
import { toOfficeFormat } from './convert-office.ts'
import type { OfficeFormat } from './file-kind.ts'

/** The largest document that is read. */
const maxBytes = 50 * 2 ** 20

export const filePath = z
  .string()
  .min(1)
  .max(4_096)
  .describe('Path of the file in the workspace, such as "report.pdf" or "/workspace/report.pdf".')

/** The password of a protected file. */
export const password = z.string().min(1).max(255).nullish().describe('Password of the file, if it is protected by one.')

export const offsetOf = (unit: string) =>
  z.int().min(0).default(0).describe(`How many ${unit} to skip. An answer that is not the end says with which offset to continue.`)

/** Fields in every answer about a document that give its place in the whole. */
export const placeFields = {
  format: answerFormat,
  offset: z.int(),
  total: z.int(),
  nextOffset: z.int().nullable(),
  notices: z.array(z.string()),
}

type Place = Readonly<z.output<z.ZodObject<typeof placeFields>>>

/** Reads a file of the workspace in the parser jail, with the parser `./parse` beside the module at `moduleUrl`. */
export const readDocument = (path: string, moduleUrl: string, options: object, context: ServerToolContext) =>
  readWithParser(context.parsers.parse, path, moduleUrl, options, context)

/** Does the same with a parser that has native addons or threads. */
export const readNatively = (path: string, moduleUrl: string, options: object, context: ServerToolContext) =>
  readWithParser(context.parsers.parseNative, path, moduleUrl, options, context)

/** Does the same as `readDocument` with what LibreOffice makes of a document that is not in `format` but in one that it converts. */
export const readOfficeDocument = (path: string, format: OfficeFormat, moduleUrl: string, options: object, context: ServerToolContext) =>
  readWithParser(context.parsers.parse, path, moduleUrl, options, context, (file, bytes) => toOfficeFormat(file, bytes, format, context))

async function readWithParser(
  parse: ParserJail['parse'],
  path: string,
  moduleUrl: string,
  options: object,
  { workspace, signal }: ServerToolContext,
  convert: (file: string, bytes: Buffer) => Promise<Buffer> = async (_, bytes) => bytes,
): Promise<Record<string, unknown>> {
  const file = JSON.stringify(path.slice(0, 200))
  const bytes = await convert(file, await workspace.get(path, maxBytes, signal))
  const parser = siblingModule('parse', moduleUrl)
  return toWellFormed(await parse(parser, bytes, { file, ...options }, signal)) as Record<string, unknown>
}

/**
 * Replaces halves of surrogate pairs, which a document may contain and a cut may leave, because other languages do not accept them as text.
 */
function toWellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(toWellFormed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, toWellFormed(part)]))
}

/** The text of an answer: its content, its notices, and how to continue. As JSON it is the whole output. */
export function toAnswer(output: Place, unit: string, content: string): string {
  if (output.format === 'json') {
    const { format: _, ...facts } = output
    return JSON.stringify(facts)
  }
  const lines = [...output.notices]
  if (output.total === 0) lines.push(`There are no ${unit.toLowerCase()}.`)
  else if (output.nextOffset !== null) {
    lines.push(`${unit} ${output.offset + 1} to ${output.nextOffset} of ${output.total}; continue with offset ${output.nextOffset}.`)
  }
  return [content, ...lines.map((line) => `[${line}]`)].filter((part) => part !== '').join('\n\n')
}

export const extractImages = z
  .boolean()
  .default(true)
  .describe('Marks where images stand and lists them; unpack the file in the terminal to get them.')

/** Images in an Office file. They are only named; a command in the terminal unpacks them. */
export const imageFiles = z.array(z.object({ name: z.string(), bytes: z.int() }))

export function describeImages(images: z.output<typeof imageFiles>): string {
  return images.length === 0 ? '' : `Images in the file: ${images.map(({ name, bytes }) => `${name} (${bytes} bytes)`).join(', ')}`
}

/** The tool that lists the formats that a server reads. */
export function listSupportedFormats(formats: Readonly<Record<string, string>>): ServerTool {
  const output = z.object({ formats: z.array(z.object({ extension: z.string(), description: z.string() })) })
  return defineTool({
    name: 'list_supported_formats',
    description: 'Lists the file formats that this server reads. The content of a file decides, not its extension.',
    input: z.object({}),
    output,
    call: async () => ({ formats: Object.entries(formats).map(([extension, description]) => ({ extension, description })) }),
    toText: (answer) => answer.formats.map(({ extension, description }) => `${extension}: ${description}`).join('\n'),
  })
}
