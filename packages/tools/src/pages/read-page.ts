import { type OutwardResponse, siblingModule, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { toAnswer } from '../documents/document-tool.ts'
import { fileKind } from '../documents/file-kind.ts'
import type { ServerToolContext } from '../tool-server.ts'
import type { PageOptions, ParsedPage } from './parse-page.ts'

export const pageOffset = z
  .int()
  .min(0)
  .default(0)
  .describe('How many characters to skip. An answer that is not the end says with which offset to continue.')

export const pageLimit = z.int().min(200).max(50_000).default(10_000).describe('At most this many characters.')

/** Fields in every answer about a page that give its content and its place in the whole. */
export const pageFields = { content: z.string(), offset: z.int(), total: z.int(), nextOffset: z.int().nullable() }

/** Reads a fetched page in the parser jail. */
export async function readPage(
  response: OutwardResponse,
  options: Omit<PageOptions, 'contentType'>,
  context: ServerToolContext,
): Promise<ParsedPage> {
  const kind = /^(?:audio|video|image|font)\//.exec(response.contentType) ? response.contentType : fileKind(response.bytes)
  if (kind !== 'text')
    throw new ToolError(
      `This address leads to a file (${kind}), not to a page; save it with download_file and read it with the tool for such files.`,
    )
  const module = siblingModule('parse-page', import.meta.url)
  const page = await context.parsers.parse(module, response.bytes, { ...options, contentType: response.contentType }, context.signal)
  return page as ParsedPage
}

/** The text of a page for the model: its heading, its text, and how to go on. */
export function pageText(
  heading: string,
  page: { readonly content: string; readonly offset: number; readonly total: number; readonly nextOffset: number | null },
): string {
  return toAnswer({ ...page, format: 'markdown', notices: [] }, 'Characters', `${heading}\n\n${page.content}`.trim())
}
