import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { defineTool, type ServerTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'
import { browserUse, getBrowserCapabilities } from './browser-use.ts'
import { pictureOf } from './output-files.ts'
import packageTools from './package-tools.json' with { type: 'json' }
import { pageAddress } from './page-address.ts'

/** Largest picture that is kept beside an answer. A larger one is in its file alone. */
const maxPictureBytes = 4 * 2 ** 20

/** A tool of `@playwright/mcp`, with the schema that it has there. */
function toServerTool({ name, description, inputSchema }: (typeof packageTools)[number]): ServerTool {
  return defineTool({
    name,
    description: `${description.replace(/\.$/, '')}.`,
    input: z.fromJSONSchema(inputSchema as z.core.JSONSchema.JSONSchema) as z.ZodObject,
    output: z.object({ text: z.string() }),
    async call(input, context) {
      const { url } = input
      const text = await context.browse(name, typeof url === 'string' ? { ...input, url: pageAddress(url) } : input)
      return { text: text + (await showPicture(text, context)) }
    },
    toText: ({ text }) => text,
  })
}

/** Keeps the picture of a screenshot beside its answer. Resolves to a note if it is too large. */
async function showPicture(answer: string, { workspace, show, signal }: ServerToolContext): Promise<string> {
  const picture = pictureOf(answer)
  if (!picture) return ''
  try {
    const bytes = await workspace.get(picture.path, maxPictureBytes, signal)
    show({ mimeType: picture.mimeType, data: bytes.toString('base64') })
    return ''
  } catch (error) {
    if (error instanceof ToolError) return `\n[The picture is in its file alone. ${error.message}]`
    throw error
  }
}

const refused = {
  browser_run_code_unsafe:
    'browser_run_code_unsafe is not offered: its code would run beside the browser and not in a page. Use browser_evaluate for code in the page.',
}

const pageTools = packageTools.filter(({ name }) => !Object.hasOwn(refused, name)).map(toServerTool)

export const browserServer: ToolServer = {
  name: 'browser-server',
  scope: 'browser',
  description: 'Operates a browser.',
  needs: [
    {
      anyOf: ['browseruse-model'],
      remedy: 'Set BROWSERUSE_LLM_BASE_URL and BROWSERUSE_LLM_MODEL_NAME for browser_use; the other tools work without.',
    },
  ],
  tools: [...pageTools, browserUse(pageTools), getBrowserCapabilities],
  missing: (browsers) => browsers.missing(),
  refused,
}
