import { totalmem } from 'node:os'
import { availableMemory, constrainedMemory } from 'node:process'
import { createSlots, type SandboxTier, type Slots, ToolError, type Workspace } from '@aworld-train/core'
import { missingForBrowser } from './browser-config.ts'
import { LeaseBrowser } from './lease-browser.ts'

const MiB = 2 ** 20
/** Memory that a browser is reckoned with. One with an empty page takes 170 MB, and one of Debian's full Chromium 360 MB. */
const browserBytes = 512 * MiB
/** Memory of what joins a workspace to a browser elsewhere. */
const remoteBytes = 128 * MiB
/** Memory of the machine that is left to everything else. */
const otherBytes = 1024 * MiB
/** How long a call waits for another lease's browser to end. */
const waitMs = 30_000

export interface BrowsersOptions {
  /** Tier of the workspaces. */
  readonly tier: SandboxTier
  /** Address of a browser elsewhere, for the DevTools protocol. Default: Chromium in each workspace. */
  readonly remote?: string | null | undefined
  /** Memory that all browsers may take together, in bytes. Default: that of the machine or of its control group, but for a part. */
  readonly memoryBytes?: number | undefined
}

/** The browsers of an environment server: one for each workspace whose agents use it, as many at a time as memory allows. */
export class Browsers {
  readonly #ofWorkspace = new WeakMap<Workspace, LeaseBrowser>()
  readonly #places: Slots

  readonly #tier: SandboxTier
  /** Memory that each is reckoned with. */
  readonly #bytes: number
  readonly #remote: string | null

  constructor({
    tier,
    remote = null,
    memoryBytes = Math.min(totalmem(), constrainedMemory() || Number.POSITIVE_INFINITY) - otherBytes,
  }: BrowsersOptions) {
    this.#tier = tier
    this.#remote = remote
    this.#bytes = remote === null ? browserBytes : remoteBytes
    this.#places = createSlots(Math.max(1, Math.floor(memoryBytes / this.#bytes)))
  }

  /** What the machine lacks for browsers, each with its remedy. */
  missing(): readonly string[] {
    const missing = missingForBrowser(this.#tier, this.#remote !== null)
    return missing === null ? [] : [missing]
  }

  of(workspace: Workspace): LeaseBrowser {
    const browser =
      this.#ofWorkspace.get(workspace) ?? new LeaseBrowser({ workspace, remote: this.#remote, admit: (signal) => this.#admit(signal) })
    this.#ofWorkspace.set(workspace, browser)
    return browser
  }

  /** Takes a place for a browser, and resolves to what gives it back. Rejects with a ToolError if there is none for a while. */
  async #admit(signal: AbortSignal): Promise<() => void> {
    const [missing] = this.missing()
    if (missing !== undefined) throw new ToolError(`There is no browser here. ${missing}`)
    try {
      await this.#places.take(AbortSignal.any([signal, AbortSignal.timeout(waitMs)]))
    } catch {
      signal.throwIfAborted()
      throw this.#refusal()
    }
    if (availableMemory() >= this.#bytes) return () => this.#places.give()
    this.#places.give()
    throw this.#refusal()
  }

  #refusal(): ToolError {
    const free = Math.floor(availableMemory() / MiB)
    return new ToolError(
      `There is no memory for another browser now: ${this.#places.taken()} run, and ${free} MB are free. Try again in a minute, or go on without.`,
    )
  }
}
