import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { defineFormattedTool, defineTool, type ToolServer } from '../../tool-server.ts'

/** The largest file that is saved, in bytes. */
const maxBytes = 50 * 2 ** 20
const megabytes = maxBytes / 2 ** 20

const downloadFile = defineFormattedTool({
  name: 'download_file',
  description:
    'Saves a file of the web in the workspace, where the terminal and the document tools find it. It reads nothing to you; use read_url for a page.',
  input: z.object({
    url: z.string().min(1).max(8_000).describe('Address of the file, http or https.'),
    output_file_path: z.string().min(1).max(4_096).describe('Where to save it in the workspace, such as "paper.pdf".'),
    overwrite: z.boolean().default(false).describe('Whether a file that is there already is replaced.'),
    timeout: z.number().min(1).max(300).default(60).describe('Seconds that the download may take.'),
  }),
  output: z.object({ path: z.string(), bytes: z.int(), contentType: z.string(), url: z.string() }),
  async call({ url, output_file_path: path, overwrite, timeout }, { outward, workspace, signal }) {
    if (!overwrite) {
      const { exitCode } = await workspace.run({ command: ['bash', '-c', 'test -e "$1"', 'bash', path], timeoutMs: 30_000 }, signal)
      if (exitCode === 0) throw new ToolError(`"${path}" is there already; choose another path, or set overwrite.`)
    }
    const answer = await outward.fetch(url, { maxBytes, timeoutMs: timeout * 1_000 }, signal)
    if (answer.status < 200 || answer.status >= 300)
      throw new ToolError(`The download was answered with status ${answer.status}, and nothing was saved; check the address.`)
    await workspace.put(path, answer.bytes, signal)
    return { path, bytes: answer.bytes.length, contentType: answer.contentType, url: answer.url }
  },
  toText: ({ path, bytes, contentType }) => `Saved ${bytes} bytes${contentType && ` of ${contentType}`} as ${path}.`,
})

export const downloadServer: ToolServer = {
  name: 'download-server',
  scope: 'web',
  description: 'Saves files of the web in the workspace.',
  needs: [],
  tools: [
    downloadFile,
    defineTool({
      name: 'get_download_capabilities',
      description: 'Says what download_file can save.',
      input: z.object({}),
      output: z.object({ maxBytes: z.int(), schemes: z.array(z.string()) }),
      call: async () => ({ maxBytes, schemes: ['http', 'https'] }),
      toText: () =>
        `download_file saves files of at most ${megabytes} MB from public http and https addresses, without cookies or passwords.`,
    }),
  ],
}
