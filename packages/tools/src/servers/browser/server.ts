import { z } from 'zod'
import { defineTool, type ServerTool, type ToolServer } from '../../tool-server.ts'
import packageTools from './package-tools.json' with { type: 'json' }

/** A tool of `@playwright/mcp`, with the schema that it has there. */
function toServerTool({ name, description, inputSchema }: (typeof packageTools)[number]): ServerTool {
  return defineTool({
    name,
    description: `${description.replace(/\.$/, '')}.`,
    input: z.fromJSONSchema(inputSchema as z.core.JSONSchema.JSONSchema) as z.ZodObject,
    output: z.object({ text: z.string() }),
    call: async (input, { browser, signal }) => ({ text: await browser.call(name, input, signal) }),
    toText: ({ text }) => text,
  })
}

/** Runs code of the model's in the process that operates the browser, beside which a page is no bound. */
const refused = 'browser_run_code_unsafe'

export const browserServer: ToolServer = {
  name: 'browser-server',
  scope: 'browser',
  description: 'Operates a browser.',
  needs: [],
  tools: packageTools.filter(({ name }) => name !== refused).map(toServerTool),
}
