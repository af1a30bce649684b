import type { Workspace } from '@aworld-train/core'
import { LeaseBrowser } from './lease-browser.ts'

/** The browsers of an environment server: one for each workspace whose agents use it. */
export class Browsers {
  readonly #ofWorkspace = new WeakMap<Workspace, LeaseBrowser>()

  of(workspace: Workspace): LeaseBrowser {
    const browser = this.#ofWorkspace.get(workspace) ?? new LeaseBrowser(workspace, async () => null)
    this.#ofWorkspace.set(workspace, browser)
    return browser
  }
}
