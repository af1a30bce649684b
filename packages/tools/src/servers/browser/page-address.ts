import { ToolError } from '@aworld-train/core'

const schemes: ReadonlySet<string> = new Set(['http:', 'https:', 'data:'])
/** A host and perhaps a port, as a person types them. `URL` would take the host for a scheme. */
const withoutScheme = /^(?:localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:[/?#]|$)/

/**
 * The address of a page as the browser gets it. Addresses of files and of the browser's own pages throw a ToolError, and so do those inside
 * of another scheme, such as `view-source:`.
 */
export function pageAddress(text: string): string {
  const typed = text.trim()
  const full = withoutScheme.test(typed) ? `${/^(?:localhost|127\.)/.test(typed) ? 'http' : 'https'}://${typed}` : typed
  const shown = JSON.stringify(text.slice(0, 200))
  if (!URL.canParse(full)) throw new ToolError(`${shown} is no address of a page; write it as https://example.com/page.`)
  const { protocol, href } = new URL(full)
  if (schemes.has(protocol) || href === 'about:blank') return href
  throw new ToolError(`The browser does not open ${shown}: it opens http and https addresses, data: and about:blank, and nothing else.`)
}
