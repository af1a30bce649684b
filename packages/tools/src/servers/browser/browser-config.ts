import { accessSync, constants } from 'node:fs'
import { type SandboxTier, ToolError } from '@aworld-train/core'
import type { Egress } from '../../egress/open-egress.ts'
import { needsPrograms } from '../../sandbox/needs-programs.ts'

/** Programs of Debian, the lighter one first. Those in `/usr/bin` are scripts that read files which no workspace has. */
const wholeChromium = '/usr/lib/chromium/chromium'
const executables = ['/usr/lib/chromium/chromium-headless-shell', wholeChromium]

/** How long a page may take to load, in milliseconds. */
const navigationTimeoutMs = 30_000
/** How long an action may take, such as a click on an element that is not there yet. It allows for a machine under heavy load. */
const actionTimeoutMs = 10_000

/** What a machine lacks for a browser, which may be a remote one, with the remedy as a sentence; null if nothing. */
export function missingForBrowser(tier: SandboxTier, isRemote: boolean): string | null {
  if (tier === 'simulated') return needsPrograms('A browser', ['chromium-headless-shell'])
  if (!isRemote && findExecutable() === undefined) return 'Chromium is not installed; run: apt-get install chromium-headless-shell.'
  return null
}

const findExecutable = () => executables.find(isExecutable)

/** Hosts that are the workspace itself, which its browser reaches without the proxy. */
const ownHosts = 'localhost,127.0.0.1,[::1]'

/**
 * Launches Chromium, which reaches the web by the proxy of its workspace, and has a window on the lease's desktop if there is one. Throws
 * a ToolError if only a browser without windows is installed for a desktop.
 */
export function launchedBrowser({ port, credentials, spki }: Egress, hasDesktop: boolean) {
  if (hasDesktop && !isExecutable(wholeChromium))
    throw new ToolError('The browser of a desktop is not installed where the environment runs; its operator runs: apt-get install chromium')
  const launchOptions = {
    executablePath: hasDesktop ? wholeChromium : findExecutable(),
    headless: !hasDesktop,
    chromiumSandbox: true,
    args: ['--disable-dev-shm-usage', `--ignore-certificate-errors-spki-list=${spki}`],
    proxy: { server: `http://127.0.0.1:${port}`, bypass: ownHosts, ...credentials },
  }
  return { launchOptions }
}

/** Configuration of `@playwright/mcp` as JSON. */
export function browserConfig(browser: object): string {
  return JSON.stringify({
    browser: { browserName: 'chromium', isolated: true, ...browser },
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
