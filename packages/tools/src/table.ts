import { audioServer } from './servers/audio/server.ts'
import { browserServer } from './servers/browser/server.ts'
import { codeServer } from './servers/code/server.ts'
import { csvServer } from './servers/csv/server.ts'
import { docxServer } from './servers/docx/server.ts'
import { downloadServer } from './servers/download/server.ts'
import { googlesearchServer } from './servers/googlesearch/server.ts'
import { guardServer } from './servers/guard/server.ts'
import { imageServer } from './servers/image/server.ts'
import { parxivServer } from './servers/parxiv/server.ts'
import { pdfServer } from './servers/pdf/server.ts'
import { pptxServer } from './servers/pptx/server.ts'
import { readwebServer } from './servers/readweb/server.ts'
import { terminalServer } from './servers/terminal/server.ts'
import { thinkServer } from './servers/think/server.ts'
import { txtServer } from './servers/txt/server.ts'
import { videoServer } from './servers/video/server.ts'
import { waybackServer } from './servers/wayback/server.ts'
import { wikiServer } from './servers/wiki/server.ts'
import type { ToolServer } from './tool-server.ts'

/** Every server of the environment, in the order in which their tools are listed. */
export const toolServers: readonly ToolServer[] = [
  readwebServer,
  browserServer,
  csvServer,
  docxServer,
  pptxServer,
  pdfServer,
  txtServer,
  downloadServer,
  codeServer,
  thinkServer,
  guardServer,
  audioServer,
  imageServer,
  videoServer,
  parxivServer,
  terminalServer,
  waybackServer,
  wikiServer,
  googlesearchServer,
]

/** Other names that a server answers to. */
export const serverAliases: Readonly<Record<string, string>> = { 'browseruse-server': 'browser-server' }
