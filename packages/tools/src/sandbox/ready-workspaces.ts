import { AsyncLocalStorage } from 'node:async_hooks'
import { stableStringify } from '@aworld-train/core'

/** What is opened in advance. */
interface Opened {
  /** Whether it ended by itself. */
  hasDied(): boolean
  close(): Promise<void>
}

export interface ReadyOptions<Limits, Item extends Opened> {
  readonly open: (limits: Limits, signal: AbortSignal) => Promise<Item>
  /** Number of those that stand ready. Rollouts that begin one by one find one; many that begin at once open most of theirs. */
  readonly count: number
  /** How long nobody must have taken one before the next are made ready, so that they take no time from current work. */
  readonly pauseMs: number
  /** How long they stand ready if nobody takes one. Default: for ever. */
  readonly idleMs?: number
}

/** Workspaces that are opened in advance, because that takes longer than anything else at the start of a rollout. */
export interface ReadyWorkspaces<Limits, Item> {
  /** Takes an unused one with these limits; undefined if none stands ready. The next ones get the same limits. */
  take(limits: Limits): Item | undefined
  close(): Promise<void>
}

export function createReadyWorkspaces<Limits, Item extends Opened>(options: ReadyOptions<Limits, Item>): ReadyWorkspaces<Limits, Item> {
  const { open, count, pauseMs, idleMs } = options
  const closing = new AbortController()
  /** Runs work that belongs to no lease, not even to the one that took the last. */
  const outside = AsyncLocalStorage.snapshot()
  let ready: { readonly item: Item; readonly limits: string }[] = []
  let timer: NodeJS.Timeout | undefined
  let filling: Promise<void> = Promise.resolve()

  async function fill(limits: Limits): Promise<void> {
    const text = stableStringify(limits)
    await keep(text)
    try {
      while (ready.length < count) {
        const item = await open(limits, closing.signal)
        ready.push({ item, limits: text })
      }
    } catch {
      // The next workspace is opened when it is wanted, and then reports what is wrong.
    }
  }

  /** Keeps those with these limits and closes others. */
  async function keep(text: string | null): Promise<void> {
    const others = ready.filter(({ limits }) => limits !== text)
    ready = ready.filter(({ limits }) => limits === text)
    await Promise.allSettled(others.map(({ item }) => item.close()))
  }

  function enqueue(work: () => Promise<void>): void {
    filling = filling.then(work)
  }

  return {
    take(limits) {
      clearTimeout(timer)
      timer = setTimeout(() => {
        if (idleMs !== undefined) timer = setTimeout(() => enqueue(() => keep(null)), idleMs).unref()
        enqueue(() => outside(() => fill(limits)))
      }, pauseMs).unref()
      const text = stableStringify(limits)
      const found = ready.find((each) => each.limits === text)?.item
      ready = ready.filter(({ item }) => item !== found)
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
