import { accessSync, constants } from 'node:fs'
import type { SandboxTier } from '@aworld-train/core'

/** Programs of Debian, the lighter one first. Those in `/usr/bin` are scripts that read files which no workspace has. */
const executables = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/chromium']

/** The proxy that joins a browser to the web. */
export interface BrowserEgress {
  /** Its address as the workspace sees it: `http://127.0.0.1:3128`. */
  readonly proxy: string
  /** Hash of the public key of the authority that signs what comes through it, as Chromium's `--ignore-certificate-errors-spki-list` takes it. */
  readonly spki: string
}

/** How long a page may take to load, in milliseconds. */
const navigationTimeoutMs = 30_000
/** How long an action may take, such as a click on an element that is not there yet. It allows for a machine under heavy load. */
const actionTimeoutMs = 10_000

/** What a machine lacks for a browser, with the remedy as a sentence; null if nothing. */
export function missingForBrowser(tier: SandboxTier): string | null {
  if (tier === 'simulated')
    return 'A browser does not run in the tier "simulated"; start the environment on Linux with bubblewrap and Chromium: apt-get install bubblewrap chromium-headless-shell.'
  if (findExecutable() === undefined) return 'Chromium is not installed; run: apt-get install chromium-headless-shell.'
  return null
}

const findExecutable = () => executables.find(isExecutable)

/**
 * Configuration of `@playwright/mcp` as JSON. Addresses of the loopback are those of the workspace itself, which the browser reaches
 * without the proxy.
 */
export function browserConfig(egress: BrowserEgress | null): string {
  const executablePath = findExecutable()
  const args = ['--disable-dev-shm-usage', ...(egress ? [`--ignore-certificate-errors-spki-list=${egress.spki}`] : [])]
  const launchOptions = { executablePath, headless: true, chromiumSandbox: true, args, ...(egress && { proxy: { server: egress.proxy } }) }
  return JSON.stringify({
    browser: { browserName: 'chromium', isolated: true, launchOptions },
    // Code of Playwright and tools that pages register are of no use to an agent.
    codegen: 'none',
    webmcp: false,
    // No level that it knows: it would keep a log with times in the workspace.
    console: { level: 'none' },
    // Pictures are read from their files.
    imageResponses: 'omit',
    timeouts: { action: actionTimeoutMs, navigation: navigationTimeoutMs, idle: 0 },
  })
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
