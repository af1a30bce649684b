import { setTimeout as sleep } from 'node:timers/promises'
import { createSlots, orAborted, type RunningProgram, ToolError, TrainError, type Workspace } from '@aworld-train/core'
import { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { Egress } from '../../egress/open-egress.ts'
import { browserConfig, launchedBrowser } from './browser-config.ts'
import { browserProgram } from './browser-folders.ts'
import { errorText, OutputFiles, withoutDuration } from './output-files.ts'
import { ProgramTransport } from './program-transport.ts'
import { joinRemoteBrowser, remotePort } from './remote-browser.ts'

/** Longest time of one call. A page that keeps the browser from answering ends with it. It is within what clients of MCP wait for. */
const callTimeoutMs = 50_000
/** Longest time until the browser's program answers for the first time, on a machine under heavy load. */
const startTimeoutMs = 60_000
const moveTimeoutMs = 30_000
/** Longest time in which a browser that does nothing answers. */
const answerMs = 5_000

const callResult = z.object({ content: z.tuple([z.object({ text: z.string() })]), isError: z.boolean().default(false) })

interface OpenBrowser {
  readonly program: RunningProgram
  readonly client: Client
}

/** The part of a tool's context that a browser uses. */
interface BrowserContext {
  desktop(): Promise<{ readonly display: string } | null>
  egress(): Promise<Egress>
  readonly signal: AbortSignal
}

export interface LeaseBrowserOptions {
  readonly workspace: Workspace
  /** Address of a browser elsewhere that is used in place of one in the workspace. */
  readonly remote: string | null
  /** Waits until there is memory for a browser, and resolves to what tells that it has ended. */
  readonly admit: (signal: AbortSignal) => Promise<() => void>
  /** Called at each call. */
  readonly onCall: () => void
}

/** The browser of a lease, in the jail of its workspace. All agents of the lease share it, and their calls come one after the other. */
export class LeaseBrowser {
  readonly #options: LeaseBrowserOptions
  readonly #turn = createSlots(1)
  readonly #files = new OutputFiles()
  /** Ends the start of the browser that waits for the first call. */
  readonly #early = new AbortController()
  /** The browser that waits for the first call, if it was started before that. */
  #ready: OpenBrowser | null = null
  #open: OpenBrowser | null = null
  /** Whether a browser has ended by itself since the last answer. */
  #hasDied = false

  constructor(options: LeaseBrowserOptions) {
    this.#options = options
  }

  /**
   * Starts the browser before its first call, for the egress that the lease will have, if it does not run yet. Rejects if it does not start;
   * the first call then tries again.
   */
  async prepare(egress: Egress, admit: LeaseBrowserOptions['admit'], ending: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([ending, this.#early.signal])
    await this.#turn.take(signal)
    try {
      if (this.#ready || this.#open) return
      const browser = await this.#start({ egress: async () => egress, desktop: async () => null, signal }, admit)
      this.#ready = browser
      void browser.program.ended.then(() => {
        if (this.#ready === browser) this.#ready = null
      })
      await launch(browser, signal)
    } finally {
      this.#turn.give()
    }
  }

  /** Whether a browser waits for the first call. */
  isReady(): boolean {
    return this.#ready !== null
  }

  /** Resolves to whether a browser that waits for the first call answers. */
  async answers(signal: AbortSignal): Promise<boolean> {
    if (!this.#ready) return false
    return await launch(this.#ready, AbortSignal.any([signal, AbortSignal.timeout(answerMs)])).then(
      () => true,
      () => false,
    )
  }

  /** Ends the browser that waits for the first call, and resolves when nothing of it is left. */
  async retire(): Promise<void> {
    this.#early.abort()
    await this.#turn.take(new AbortController().signal)
    await this.#ready?.program.close()
    this.#turn.give()
  }

  /** Hands out the browser that waits for the first call, if it is alive. */
  async #takeReady({ egress, signal }: BrowserContext): Promise<OpenBrowser | null> {
    if (!this.#ready) return null
    await egress()
    const isAlive = await this.answers(signal)
    const browser = this.#ready
    this.#ready = null
    if (isAlive) return browser
    await browser?.program.close()
    signal.throwIfAborted()
    return null
  }

  /**
   * Calls a tool of Playwright's, and starts the browser for the first. Resolves to the text of its answer. What the browser refuses, and
   * its end in the middle of the call, reject with a ToolError.
   */
  async call(name: string, input: Readonly<Record<string, unknown>>, context: BrowserContext): Promise<string> {
    const { signal } = context
    this.#options.onCall()
    await this.#turn.take(signal)
    try {
      this.#open ??= (await this.#takeReady(context)) ?? (await this.#start(context, this.#options.admit))
      const browser = this.#open
      const isNew = this.#hasDied
      this.#hasDied = false
      const late = AbortSignal.timeout(callTimeoutMs)
      const { text, isError } = await ask(browser.client, name, input, AbortSignal.any([signal, late])).catch(async (cause: unknown) => {
        signal.throwIfAborted()
        this.#forget(browser)
        await browser.program.close()
        throw ended(late.aborted ? `did not answer within ${callTimeoutMs / 1_000} s and was ended` : 'ended while it worked', cause)
      })
      if (isError) throw toToolError(text, isNew)
      const answer = await this.#keepFiles(withoutDuration(text), signal)
      return isNew ? `${newNote}\n${answer}` : answer
    } finally {
      this.#turn.give()
    }
  }

  /** Gives the files that an answer links names without the time. */
  async #keepFiles(answer: string, signal: AbortSignal): Promise<string> {
    const { text, moves } = this.#files.rename(answer)
    const command = moves.map(({ from, to }) => `mv -fT '${from}' '${to}'`).join(' && ')
    if (moves.length === 0) return text
    const { exitCode } = await this.#options.workspace.run({ command: ['bash', '-c', command], timeoutMs: moveTimeoutMs }, signal)
    return exitCode === 0 ? text : answer
  }

  async #start({ desktop, egress, signal }: BrowserContext, admit: LeaseBrowserOptions['admit']): Promise<OpenBrowser> {
    const { workspace, remote } = this.#options
    const dismiss = await admit(signal)
    const ending = new AbortController()
    const choose = async (): Promise<{ browser: object; env: Record<string, string> }> => {
      if (remote !== null) return { browser: await this.#join(remote, signal, ending.signal), env: {} }
      const [way, screen] = await Promise.all([egress(), desktop()])
      return { browser: launchedBrowser(way, screen !== null), env: screen === null ? {} : { DISPLAY: screen.display } }
    }
    const program = await choose()
      .then(({ browser, env }) => {
        // The configuration has the password of the proxy, so it is in no argument and no file.
        const script = 'exec env -u CONFIGURATION node "$0" --config <(printf %s "$CONFIGURATION")'
        const variables = { ...env, CONFIGURATION: browserConfig(browser) }
        return workspace.program({ command: ['bash', '-c', script, browserProgram], profile: 'graphical', env: variables }, ending.signal)
      })
      .catch((error: unknown) => {
        dismiss()
        ending.abort()
        throw error
      })
    void program.ended.then(() => ending.abort())
    void program.ended.then(dismiss)
    const client = new Client({ name: 'aworld-train', version: '0.1.0' })
    try {
      await orAborted(client.connect(new ProgramTransport(program)), AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]))
    } catch (cause) {
      await program.close()
      signal.throwIfAborted()
      throw startFailure(program.errors(), cause)
    }
    const browser = { program, client }
    void program.ended.then(() => this.#forget(browser))
    return browser
  }

  /** Joins a port of the workspace to a browser elsewhere, until `until` aborts. */
  async #join(address: string, signal: AbortSignal, until: AbortSignal): Promise<object> {
    const { path, serve } = await joinRemoteBrowser(address, signal)
    await this.#options.workspace.listen(remotePort, serve, until)
    return { cdpEndpoint: `ws://127.0.0.1:${remotePort}${path}` }
  }

  #forget(browser: OpenBrowser): void {
    if (this.#open !== browser) return
    this.#open = null
    this.#hasDied = true
  }
}

/** Has the program start Chromium, which no other call does that opens no page: there is no tab to close. Rejects if it has ended. */
async function launch({ client }: OpenBrowser, signal: AbortSignal): Promise<void> {
  await ask(client, 'browser_tabs', { action: 'close' }, AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]))
}

/** Chromium shows a page of its own after an error, and the next navigation may meet that. */
const interrupted = 'is interrupted by another navigation to '
const mostTries = 3
const settleMs = 500

async function ask(client: Client, name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal) {
  for (let tries = 1; ; tries++) {
    // The signal says when it is late.
    const result = await client.callTool({ name, arguments: input }, { signal, timeout: callTimeoutMs * 2 })
    const { content, isError } = callResult.parse(result)
    const [{ text }] = content
    if (!isError || tries === mostTries || !text.includes(interrupted)) return { text, isError }
    await sleep(settleMs, undefined, { signal })
  }
}

const newNote = '[The browser had ended; this is another one, without its pages.]'
const nextIsEmpty = 'The next call begins with an empty page.'

const ended = (what: string, cause?: unknown) => new ToolError(`The browser ${what}; its pages are gone. ${nextIsEmpty}`, { cause })

/** The error for what Playwright refuses, and for a page or a browser that ended in the middle of the call. */
function toToolError(answer: string, isNew: boolean): ToolError {
  if (/\bNo open pages available|\bhas been closed\b/.test(answer)) return ended('or its page ended while it worked')
  if (/\bTarget crashed\b/.test(answer))
    return new ToolError(`The page crashed, for instance because it took more memory than the workspace has. ${nextIsEmpty}`)
  return new ToolError(isNew ? `${newNote}\n${errorText(answer)}` : errorText(answer))
}

function startFailure(errors: string, cause: unknown): Error {
  if (cause instanceof TrainError) return cause
  if (errors.includes('Cannot find module') || errors.includes('node: not found'))
    return new ToolError(
      'The browser did not start: users of jails can read neither Node nor @playwright/mcp; the operator installs both where every user may read them.',
    )
  return new ToolError(`The browser did not start (${errors.split('\n').at(-1) || 'it did not answer'}); try again.`)
}
