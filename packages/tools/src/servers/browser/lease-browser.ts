import { createSlots, orAborted, type RunningProgram, ToolError, TrainError, type Workspace } from '@aworld-train/core'
import { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { type BrowserEgress, browserConfig } from './browser-config.ts'
import { browserProgram } from './browser-folders.ts'
import { ProgramTransport } from './program-transport.ts'

/** Longest time of one call. A page that keeps the browser from answering ends with it. */
const callTimeoutMs = 120_000
/** Longest time until the browser's program answers for the first time, on a machine under heavy load. */
const startTimeoutMs = 60_000

const answer = z.object({
  content: z.array(z.object({ type: z.literal('text'), text: z.string() })).transform((parts) => parts.map(({ text }) => text).join('\n')),
  isError: z.boolean().default(false),
})

interface OpenBrowser {
  readonly program: RunningProgram
  readonly client: Client
}

/** The browser of a lease, in the jail of its workspace. All agents of the lease share it, and their calls come one after the other. */
export class LeaseBrowser {
  readonly #workspace: Workspace
  readonly #egress: () => Promise<BrowserEgress | null>
  readonly #turn = createSlots(1)
  #open: Promise<OpenBrowser> | null = null
  /** Whether a browser has ended by itself since the last answer. */
  #hasDied = false

  constructor(workspace: Workspace, egress: () => Promise<BrowserEgress | null>) {
    this.#workspace = workspace
    this.#egress = egress
  }

  /**
   * Calls a tool of Playwright's, and starts the browser for the first. Resolves to the text of its answer. What the browser refuses, and
   * its end in the middle of the call, reject with a ToolError.
   */
  async call(name: string, input: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<string> {
    await this.#turn.take(signal)
    try {
      const { client, program } = await this.#start(signal)
      const isNew = this.#hasDied
      this.#hasDied = false
      const late = AbortSignal.timeout(callTimeoutMs)
      const either = AbortSignal.any([signal, late])
      try {
        const options = { signal: either, timeout: callTimeoutMs * 2 }
        const { content, isError } = answer.parse(await client.callTool({ name, arguments: input }, options))
        const note = isNew ? '[The browser had ended; this is another one, without its pages.]\n' : ''
        if (isError) throw new ToolError(note + content)
        return note + content
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ToolError) throw error
        await program.close()
        throw ended(late.aborted ? `did not answer within ${callTimeoutMs / 1_000} s and was ended` : 'ended while it worked')
      }
    } finally {
      this.#turn.give()
    }
  }

  async #start(signal: AbortSignal): Promise<OpenBrowser> {
    this.#open ??= this.#begin(signal).catch((error: unknown) => {
      this.#open = null
      throw error
    })
    return await this.#open
  }

  async #begin(signal: AbortSignal): Promise<OpenBrowser> {
    const script = 'printf %s "$0" > /tmp/browser.json; exec node "$1" --config /tmp/browser.json'
    const command = ['bash', '-c', script, browserConfig(await this.#egress()), browserProgram] as const
    const never = new AbortController().signal
    const program = await this.#workspace.program({ command, profile: 'graphical', env: { HOME: '/tmp' } }, never)
    const client = new Client({ name: 'aworld-train', version: '0.1.0' })
    try {
      await orAborted(client.connect(new ProgramTransport(program)), AbortSignal.any([signal, AbortSignal.timeout(startTimeoutMs)]))
    } catch (cause) {
      await program.close()
      signal.throwIfAborted()
      throw startFailure(program.errors(), cause)
    }
    void program.ended.then(() => {
      this.#open = null
      this.#hasDied = true
    })
    return { program, client }
  }
}

const ended = (what: string) => new ToolError(`The browser ${what}; its pages are gone. The next call starts another one.`)

function startFailure(errors: string, cause: unknown): Error {
  if (cause instanceof TrainError) return cause
  if (errors.includes('Cannot find module') || errors.includes('node: not found'))
    return new ToolError(
      'The browser did not start: users of jails can read neither Node nor @playwright/mcp; the operator installs both where every user may read them.',
    )
  return new ToolError(`The browser did not start (${errors.split('\n').at(-1) || 'it did not answer'}); try again.`)
}
