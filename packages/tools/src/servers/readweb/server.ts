import { type OutwardResponse, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../../json-answer.ts'
import { pageFields, pageLimit, pageOffset, pageText, readPage } from '../../pages/read-page.ts'
import { defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'

const extracted = z.object({ results: z.array(z.object({ raw_content: z.string().nullish() })) })

/** The page as Tavily reads it, including what its scripts show; null if Tavily could not. */
async function extract(url: string, images: boolean, { outward, signal }: ServerToolContext): Promise<OutwardResponse | null> {
  const body = JSON.stringify({ urls: [url], include_images: images, extract_depth: 'basic', format: 'markdown' })
  const headers = { 'content-type': 'application/json' }
  const answer = await outward.service('tavily', '/extract', { method: 'POST', headers, body, timeoutMs: 60_000 }, signal)
  const text = jsonAnswer('Tavily', answer, extracted).results[0]?.raw_content
  return text ? { status: 200, url, contentType: 'text/markdown; charset=utf-8', bytes: Buffer.from(text) } : null
}

const readUrl = defineTool({
  name: 'read_url',
  description: 'Reads a page of the web as Markdown: its title, its main text, its links and tables. Long pages come in pieces.',
  input: z.object({
    url: z.string().min(1).max(8_000).describe('Address of the page, http or https.'),
    include_images: z.boolean().default(false).describe('Whether the addresses of images are in the text.'),
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: z.object({ title: z.string(), url: z.string(), notices: z.array(z.string()), ...pageFields }),
  async call({ url, include_images, offset, limit }, context) {
    const notices: string[] = []
    const byTavily = context.outward.hasService('tavily')
      ? await extract(url, include_images, context).catch((error: unknown) => {
          if (!(error instanceof ToolError)) throw error
          notices.push(`Tavily did not read the page, so it was read from its own address: ${error.message}`)
          return null
        })
      : null
    const answer =
      byTavily ??
      (await context.outward.fetch(url, { headers: { accept: 'text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5' } }, context.signal))
    if (answer.status < 200 || answer.status >= 300)
      throw new ToolError(`The page was answered with status ${answer.status}; check the address, or search for another page.`)
    const options = { name: 'The page', url: answer.url, select: 'article', links: true, images: include_images, offset, limit } as const
    return { ...(await readPage(answer, options, context)), url: answer.url, notices }
  },
  toText: (page) => pageText(`${page.title && `# ${page.title}\n`}${page.url}`, page),
})

export const readwebServer: ToolServer = {
  name: 'readweb-server',
  scope: 'web',
  description: 'Reads pages of the web as Markdown.',
  needs: [],
  tools: [readUrl],
}
