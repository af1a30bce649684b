import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
}

const own = new URL('../../page/', import.meta.url)
/** `core/rfb.js` of noVNC, which is modules for browsers as they are. */
const noVnc = new URL('../', import.meta.resolve('@novnc/novnc'))

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
}

/** The file at a path of the desktop's page; `null` if there is none. */
export function readPageFile(path: string): PageFile | null {
  const [, ofPage, ofNoVnc] = /^\/(?:(vnc\.(?:html|css|js))|novnc\/((?:core|vendor)\/(?:[\w-]+\/)*[\w-]+\.js))$/.exec(path) ?? []
  const url = ofPage ? new URL(ofPage, own) : ofNoVnc ? new URL(ofNoVnc, noVnc) : null
  if (!url) return null
  try {
    return { type: types[url.pathname.split('.').at(-1)!]!, bytes: readFileSync(fileURLToPath(url)) }
  } catch {
    return null
  }
}
