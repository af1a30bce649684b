import { totalmem } from 'node:os'
import { availableMemory, constrainedMemory } from 'node:process'
import { createSlots, type SandboxTier, type Slots, ToolError, type Workspace } from '@aworld-train/core'
import type { Egress } from '../../egress/open-egress.ts'
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
  /** Those that were started before their first call, oldest first. */
  readonly #uncalled = new Set<LeaseBrowser>()
  /** Whether a browser was called since the last one ended that never was. */
  #areCalled = false
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
    const found = this.#ofWorkspace.get(workspace)
    if (found) return found
    const browser: LeaseBrowser = new LeaseBrowser({
      workspace,
      remote: this.#remote,
      admit: (signal) => this.#admit(signal),
      onCall: () => {
        this.#uncalled.delete(browser)
        this.#areCalled = true
      },
    })
    this.#ofWorkspace.set(workspace, browser)
    return browser
  }

  /** Whether leases use browsers of late, so that it is worth starting them before their first calls. */
  areCalled(): boolean {
    return this.#areCalled && this.#remote === null
  }

  /**
   * Starts the browser of a workspace before its first call, if there is memory for one more. It ends where the call of another lease needs its
   * memory. What prevents it is reported by the first call.
   */
  async prepare(workspace: Workspace, egress: Egress, signal: AbortSignal): Promise<void> {
    if (availableMemory() < 2 * this.#bytes) return
    const browser = this.of(workspace)
    const admit = async () => {
      if (!this.#places.tryTake()) throw this.#refusal()
      this.#uncalled.add(browser)
      return () => {
        this.#places.give()
        if (this.#uncalled.delete(browser)) this.#areCalled = false
      }
    }
    await browser.prepare(egress, admit, signal).catch(() => {})
  }

  /** Takes a place for a browser, and resolves to what gives it back. Rejects with a ToolError if there is none for a while. */
  async #admit(signal: AbortSignal): Promise<() => void> {
    const [missing] = this.missing()
    if (missing !== undefined) throw new ToolError(`There is no browser here. ${missing}`)
    try {
      if (!this.#places.tryTake()) {
        void this.#retire()
        await this.#places.take(AbortSignal.any([signal, AbortSignal.timeout(waitMs)]))
      }
    } catch {
      signal.throwIfAborted()
      throw this.#refusal()
    }
    while (availableMemory() < this.#bytes && this.#uncalled.size > 0) await this.#retire()
    if (availableMemory() >= this.#bytes) return () => this.#places.give()
    this.#places.give()
    throw this.#refusal()
  }

  /** Ends the oldest browser that nobody has called. */
  async #retire(): Promise<void> {
    const [oldest] = this.#uncalled
    if (!oldest) return
    this.#uncalled.delete(oldest)
    await oldest.retire()
  }

  #refusal(): ToolError {
    const free = Math.floor(availableMemory() / MiB)
    return new ToolError(
      `There is no memory for another browser now: ${this.#places.taken()} run, and ${free} MB are free. Try again in a minute, or go on without.`,
    )
  }
}
