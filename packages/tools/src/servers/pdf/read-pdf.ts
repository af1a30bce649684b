import { z } from 'zod'
import { placeFields, readDocument } from '../../documents/document-tool.ts'
import type { ServerToolContext } from '../../tool-server.ts'

/** Some pages of a PDF. */
export const pdfPages = z.object({ ...placeFields, parts: z.array(z.string()) })

/** Reads pages of a PDF in the workspace as Markdown, at most 40,000 characters. */
export async function readPdf(
  path: string,
  place: { readonly offset: number; readonly limit: number; readonly password: string | null },
  context: ServerToolContext,
): Promise<z.output<typeof pdfPages>> {
  const document = await readDocument(path, import.meta.url, { ...place, maxCharacters: 40_000 }, context)
  return pdfPages.parse({ ...document, format: 'markdown' })
}
