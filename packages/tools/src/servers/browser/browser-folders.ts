import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Folder of a workspace's room with the packages that operate a browser. */
const packages = '/opt/browser/node_modules'

/** The program that offers a browser's tools over its standard input and output. */
export const browserProgram = `${packages}/@playwright/mcp/cli.js`

/** Folders of the machine that a browser needs in the room of its workspace, by their paths there. */
export function browserFolders(): Readonly<Record<string, string>> {
  const tools = dirname(createRequire(import.meta.url).resolve('@playwright/mcp/package.json'))
  const core = dirname(createRequire(join(tools, 'package.json')).resolve('playwright-core/package.json'))
  return { [`${packages}/@playwright/mcp`]: tools, [`${packages}/playwright-core`]: core, '/etc/fonts': '/etc/fonts' }
}
