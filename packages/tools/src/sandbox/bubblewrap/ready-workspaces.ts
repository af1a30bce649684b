import { stableStringify, type WorkspaceLimits } from '@aworld-train/core'
import type { RoomWorkspace } from './workspace.ts'

/** Number of workspaces that stand ready. Rollouts that begin one by one find one; many that begin at once open most of theirs. */
const count = 2
/** How long nobody must have opened a workspace before the next are made ready, so that they take no time from current work. */
const pauseMs = 100

/** Workspaces that are opened in advance, because that takes longer than anything else at the start of a rollout. */
export interface ReadyWorkspaces {
  /** Takes an unused workspace with these limits; undefined if none stands ready. The next ones get the same limits. */
  take(limits: WorkspaceLimits): RoomWorkspace | undefined
  close(): Promise<void>
}

interface Ready {
  readonly workspace: RoomWorkspace
  /** Its limits as text. */
  readonly limits: string
}

export function createReadyWorkspaces(open: (limits: WorkspaceLimits, signal: AbortSignal) => Promise<RoomWorkspace>): ReadyWorkspaces {
  const closing = new AbortController()
  let ready: Ready[] = []
  let timer: NodeJS.Timeout | undefined
  let filling: Promise<void> = Promise.resolve()

  async function fill(limits: WorkspaceLimits): Promise<void> {
    const text = stableStringify(limits)
    await keep(text)
    try {
      while (ready.length < count) {
        const workspace = await open(limits, closing.signal)
        ready.push({ workspace, limits: text })
      }
    } catch {
      // The next workspace is opened when it is wanted, and then reports what is wrong.
    }
  }

  /** Keeps ready workspaces with these limits and closes others. */
  async function keep(text: string | null): Promise<void> {
    const others = ready.filter(({ limits }) => limits !== text)
    ready = ready.filter(({ limits }) => limits === text)
    await Promise.allSettled(others.map(({ workspace }) => workspace.close()))
  }

  return {
    take(limits) {
      clearTimeout(timer)
      timer = setTimeout(() => {
        filling = filling.then(() => fill(limits))
      }, pauseMs).unref()
      const text = stableStringify(limits)
      const found = ready.find((each) => each.limits === text)?.workspace
      ready = ready.filter(({ workspace }) => workspace !== found)
      if (!found?.hasDied()) return found
      void found.close()
      return this.take(limits)
    },
    async close() {
      clearTimeout(timer)
      closing.abort(new Error('The sandbox is closed.'))
      await filling
      await keep(null)
    },
  }
}
