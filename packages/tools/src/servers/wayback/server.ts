import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../../json-answer.ts'
import { pageFields, pageLimit, pageOffset, pageText, readPage } from '../../pages/read-page.ts'
import { defineFormattedTool, defineTool, type ToolServer } from '../../tool-server.ts'

const address = z.string().trim().min(1).max(4_000).describe('Address of the page as it was, such as "https://example.com/news".')

const timestamp = z
  .string()
  .regex(/^\d{4}(-?\d\d(-?\d\d([T ]?\d\d(:?\d\d(:?\d\d)?)?)?)?)?Z?$/, 'Write it as YYYY, YYYYMMDD, YYYY-MM-DD or YYYYMMDDhhmmss.')

/** Writes `2020-03-01` as the archive does: `20200301`. */
const digitsOf = (time: string) => time.replace(/\D/g, '')

const rows = z.array(z.array(z.string()))

const listArchivedVersions = defineFormattedTool({
  name: 'list_archived_versions',
  description:
    'Lists when the Internet Archive saved a page, oldest first, one line for each version that differs from the one before. Read one with get_archived_content.',
  input: z.object({
    url: address,
    limit: z.int().min(1).max(100).default(10).describe('How many versions to list.'),
    from_date: timestamp.optional().describe('The earliest: YYYY, YYYY-MM-DD or YYYYMMDDhhmmss.'),
    to_date: timestamp.optional().describe('The latest, in the same form.'),
    offset: z.int().min(0).default(0).describe('How many versions to skip. An answer that has more says with which offset to continue.'),
  }),
  output: z.object({
    versions: z.array(z.object({ timestamp: z.string(), url: z.string(), contentType: z.string() })),
    offset: z.int(),
    nextOffset: z.int().nullable(),
  }),
  async call({ url, limit, from_date, to_date, offset }, { outward, signal }) {
    const parameters = new URLSearchParams({
      url,
      output: 'json',
      fl: 'timestamp,original,mimetype',
      filter: 'statuscode:200',
      collapse: 'digest',
      limit: String(limit + 1),
      offset: String(offset),
      ...(from_date !== undefined && { from: digitsOf(from_date) }),
      ...(to_date !== undefined && { to: digitsOf(to_date) }),
    })
    const answer = await outward.service('wayback', `/cdx/search/cdx?${parameters}`, { timeoutMs: 60_000 }, signal)
    // The first row names the columns. Without a version there is not even that row.
    const found = jsonAnswer('The Internet Archive', answer, rows).slice(1)
    const versions = found
      .slice(0, limit)
      .map(([time = '', original = '', type = '']) => ({ timestamp: time, url: original, contentType: type }))
    return { versions, offset, nextOffset: found.length > limit ? offset + limit : null }
  },
  toText({ versions, offset, nextOffset }) {
    if (versions.length === 0)
      return offset === 0 ? 'The Internet Archive has no version of this page then.' : 'There are no more versions.'
    const lines = versions.map(({ timestamp: time, url, contentType }) => `${time} ${url} (${contentType})`)
    return [...lines, ...(nextOffset === null ? [] : [`[Continue with offset ${nextOffset}.]`])].join('\n')
  },
})

const getArchivedContent = defineFormattedTool({
  name: 'get_archived_content',
  description: 'Reads a page as the Internet Archive saved it, in the version nearest to a time. Long pages come in pieces.',
  input: z.object({
    url: address,
    timestamp: timestamp.describe('When: YYYY, YYYY-MM-DD or YYYYMMDDhhmmss.'),
    extract_text_only: z.boolean().default(true).describe('Whether links are left out of the text.'),
    truncate_content: z.boolean().default(false).describe('Whether the text ends after this piece, whatever comes behind it.'),
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: z.object({ title: z.string(), url: z.string(), timestamp: z.string(), ...pageFields }),
  async call({ url, timestamp: when, extract_text_only, truncate_content, offset, limit }, context) {
    const time = digitsOf(when)
    const original = /^https?:\/\//i.test(url) ? url : `http://${url}`
    // "id_" requests the page as it was saved, without the archive's own bar.
    const answer = await context.outward.service('wayback', `/web/${time}id_/${original}`, { timeoutMs: 60_000 }, context.signal)
    if (answer.status !== 200)
      throw new ToolError(`The Internet Archive has no such version (status ${answer.status}); see list_archived_versions.`)
    const saved = /\/web\/(\d+)id_\/(.*)$/s.exec(answer.url)
    const page = await readPage(
      answer,
      { name: 'The page', url: saved?.[2] ?? original, select: 'body', links: !extract_text_only, images: false, offset, limit },
      context,
    )
    const piece = truncate_content && page.nextOffset !== null ? { content: `${page.content}...`, nextOffset: null } : {}
    return { ...page, ...piece, url: original, timestamp: saved?.[1] ?? time }
  },
  toText: (page) => pageText(`${page.title && `# ${page.title}\n`}${page.url} as of ${page.timestamp}`, page),
})

export const waybackServer: ToolServer = {
  name: 'wayback-server',
  scope: 'web',
  description: 'Finds and reads pages as the Internet Archive saved them.',
  needs: [],
  tools: [
    listArchivedVersions,
    getArchivedContent,
    defineTool({
      name: 'get_wayback_capabilities',
      description: 'Says what the tools of the archive take.',
      input: z.object({}),
      output: z.object({ dates: z.array(z.string()) }),
      call: async () => ({ dates: ['YYYY', 'YYYYMMDD', 'YYYY-MM-DD', 'YYYYMMDDhhmmss'] }),
      toText: ({ dates }) =>
        `list_archived_versions lists the versions of a page, get_archived_content reads one. Times: ${dates.join(', ')}.`,
    }),
  ],
}
