import { absentServers } from './servers/absent.ts'
import { csvServer } from './servers/csv/server.ts'
import { docxServer } from './servers/docx/server.ts'
import { guardServer } from './servers/guard/server.ts'
import { pdfServer } from './servers/pdf/server.ts'
import { pptxServer } from './servers/pptx/server.ts'
import { thinkServer } from './servers/think/server.ts'
import { txtServer } from './servers/txt/server.ts'
import type { ToolServer } from './tool-server.ts'

/** Every server of the environment, in the order in which their tools are listed. */
export const toolServers: readonly ToolServer[] = [
  csvServer,
  docxServer,
  pptxServer,
  pdfServer,
  txtServer,
  thinkServer,
  guardServer,
  ...absentServers,
]

/** Other names that a server answers to. */
export const serverAliases: Readonly<Record<string, string>> = { 'browseruse-server': 'browser-server' }
