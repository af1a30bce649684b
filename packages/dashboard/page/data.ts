// The shown runs, and the data that has been read of them.

import type { RolloutList, RolloutQuery, RunClient, RunSummary } from '@aworld-train/core'
import { computed, type Signal, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { addressOfRuns } from '../src/address-of-runs.ts'
import { createEmbeddedClient } from '../src/embedded-client.ts'
import type { ExportedComparison, ExportedRun } from '../src/export-data.ts'
import { createHttpRuns, type HttpRuns } from '../src/http-client.ts'
import { route } from './route.ts'

/** Keeps the token of the address for this server, and removes it from the address, which people copy. */
function readToken(): string {
  const name = 'aworld-train-token'
  const search = new URLSearchParams(location.search)
  const token = search.get('token')
  if (token !== null) {
    localStorage.setItem(name, token)
    history.replaceState(null, '', location.pathname + location.hash)
  }
  return token ?? localStorage.getItem(name) ?? ''
}

function openRuns(): HttpRuns {
  const text = document.getElementById('data')?.textContent
  if (!text)
    return createHttpRuns(location.origin, readToken(), (isThere) => {
      isConnected.value = isThere
    })
  const { runs, comparisons } = JSON.parse(text) as { runs: readonly ExportedRun[]; comparisons: readonly ExportedComparison[] }
  // The file opens at its run. An address with a place in it is kept.
  if (location.hash === '') location.replace(addressOfRuns(runs.map(({ listing }) => listing.id)))
  const clients = new Map(
    runs.map((run) => [run.listing.id, createEmbeddedClient(run, (part) => document.getElementById(`part-${part}`)!.textContent!)]),
  )
  return {
    list: async () => runs.map(({ listing }) => listing),
    async compare(first, second) {
      const found = comparisons.find((each) => each.first === first && each.second === second)
      return found ?? { comparison: null, problem: 'The file has no such comparison.' }
    },
    run(id) {
      const client = clients.get(id)
      if (!client) throw new Error(`This file has no run "${id}".`)
      return client
    },
  }
}

/** Whether the server of a live run answers. */
export const isConnected = signal(true)
export const isExport = document.getElementById('data') !== null
export const runs = openRuns()
const clients = new Map<string, RunClient>()
export function clientOf(id: string): RunClient {
  const client = clients.get(id) ?? runs.run(id)
  clients.set(id, client)
  return client
}
export const client = () => clientOf(route.value.run)

export interface Loaded<T> {
  readonly value: T | null
  readonly error: string | null
}
/** False while it is being read for the first time. */
export const isAnswered = ({ value, error }: Loaded<unknown>) => value !== null || error !== null
interface Entry {
  readonly loaded: Signal<Loaded<unknown>>
  /** Number of the run's changes when it was read. */
  revision: number
  isLoading: boolean
  /** Whether the run changed while it was being read. */
  isStale: boolean
}
const entries = new Map<string, Entry>()
/** Most answers that are kept. Those on screen longest ago are forgotten. */
const mostEntries = 300

/** Counts the changes of the run on screen. Data of a live run is read again after each. */
const revision = signal(0)

/**
 * Reads `name` once, and again after each change of the run as long as `isLive` is true of its value. The earlier value stays until then.
 */
export function useLoaded<T>(name: string, load: () => Promise<T>, isLive: (value: T) => boolean = () => false): Loaded<T> {
  const entry = entries.get(name) ?? {
    loaded: signal<Loaded<unknown>>({ value: null, error: null }),
    revision: -1,
    isLoading: false,
    isStale: false,
  }
  // Moves the entry after those that were on screen before.
  entries.delete(name)
  entries.set(name, entry)
  const shown = entry.loaded.value as Loaded<T>
  const wanted = (shown.value === null ? shown.error !== null : isLive(shown.value)) ? revision.value : 0
  // This happens at once, so that an ending run knows what is still being read of it.
  useLayoutEffect(() => {
    if (entry.revision >= wanted) return
    entry.revision = Math.max(wanted, revision.peek())
    read(entry, load)
  }, [name, wanted, entry])
  return shown
}

function read(entry: Entry, load: () => Promise<unknown>): void {
  if (entry.isLoading) {
    entry.isStale = true
    return
  }
  entry.isLoading = true
  const startedAt = performance.now()
  Promise.resolve()
    .then(load)
    .then(
      (value) => {
        entry.loaded.value = { value, error: null }
      },
      (error: Error) => {
        entry.loaded.value = { value: entry.loaded.value.value, error: error.message }
        // Another visit tries again.
        entry.revision = -1
      },
    )
    .finally(() => {
      entry.isLoading = false
      longest = Math.max(longest, performance.now() - startedAt)
      // The answer may lack changes from while it was being read.
      if (entry.isStale) read(entry, load)
      entry.isStale = false
      for (const old of entries.keys()) {
        if (entries.size <= mostEntries) break
        entries.delete(old)
      }
    })
}

export const always = () => true
export const useSummary = (id = route.value.run) => useLoaded<RunSummary>(`${id} summary`, () => clientOf(id).summary(), always)

/** Whether a training step has all its results and was trained, so that nothing of it changes any more. */
export const isTrained = ({ rows, samples }: RolloutList) => samples.length > 0 && rows.every(({ status }) => status === 'done')

/** All rollouts of a step or of an evaluation's split. */
export function usePlace(place: string | null): Loaded<RolloutList> {
  const id = route.value.run
  return useLoaded(
    `${id} place ${place}`,
    () => (place === null ? Promise.resolve({ rows: [], tasks: {}, samples: [], next: null }) : readPlace(clientOf(id), place)),
    (list) => !isTrained(list),
  )
}

const readPlace = (run: RunClient, place: string) =>
  readAll(run, /^\d+$/.test(place) ? { split: 'train', step: Number(place) } : { split: place })

/** Reads every page of the matching rollouts. */
export async function readAll(run: RunClient, query: RolloutQuery): Promise<RolloutList> {
  const all = { rows: [] as RolloutList['rows'][number][], tasks: {}, samples: [] as RolloutList['samples'][number][], next: null }
  for (let after: string | undefined; ; ) {
    const page = await run.rollouts({ ...query, limit: 2_000, ...(after !== undefined && { after }) })
    all.rows.push(...page.rows)
    all.samples.push(...page.samples)
    Object.assign(all.tasks, page.tasks)
    if (page.next === null) return all
    after = page.next
  }
}

/** Facts from the events of a live run, before it is read again. */
interface Live {
  readonly step: number
  readonly steps: number
  readonly phase: string
  readonly done: number
  readonly total: number
}
export const live = signal<Live | null>(null)

const shownRun = computed(() => route.value.run)
// `isConnected` is about the followed run. Another run may be over.
shownRun.subscribe(() => {
  isConnected.value = true
})
let follower: AbortController | null = null
let readAgain: ReturnType<typeof setTimeout> | null = null
/** Milliseconds of the longest reading since the run was last read again. */
let longest = 0

/** Reads again what is on screen of live runs. */
export function readAgainNow(): void {
  if (!document.hidden) revision.value += 1
}

/**
 * Schedules another reading of the run after an event: at most once a second and for a tenth of the time, yet within five
 * seconds, and not while nobody sees it.
 */
function changed(): void {
  if (readAgain !== null || document.hidden) return
  readAgain = setTimeout(
    () => {
      readAgain = null
      longest = 0
      revision.value += 1
    },
    Math.min(5_000, Math.max(1_000, 10 * longest)),
  )
}

document.addEventListener('visibilitychange', () => {
  if (follower) changed()
})

/** Reads the run a last time. Its server, which may be the training process, waits until nobody follows the run. */
async function readToEnd(): Promise<void> {
  if (readAgain !== null) clearTimeout(readAgain)
  readAgain = null
  revision.value += 1
  do await new Promise((settle) => setTimeout(settle, 50))
  while ([...entries.values()].some(({ isLoading }) => isLoading))
}

/** Follows the run on screen from the point at which its summary was read. */
export function followRun(summary: RunSummary): void {
  const id = shownRun.value
  if (follower || summary.status !== 'running') return
  const ending = new AbortController()
  follower = ending
  const stop = shownRun.subscribe((run) => {
    if (run === id) return
    ending.abort()
    live.value = null
    if (follower === ending) follower = null
  })
  void (async () => {
    let state: Live = { step: 0, steps: 0, phase: '', done: 0, total: 0 }
    let isShown = true
    // Events come in hundreds. Those of one frame are shown together.
    const show = () => {
      if (isShown)
        requestAnimationFrame(() => {
          isShown = true
          if (!ending.signal.aborted) live.value = state
        })
      isShown = false
    }
    try {
      for await (const { event } of clientOf(id).follow(summary.eventsEnd, ending.signal)) {
        if (event.type === 'step-start') state = { ...state, step: event.step, steps: event.steps, phase: 'rollouts', done: 0, total: 0 }
        else if (event.type === 'evaluation-start') state = { ...state, phase: `evaluation ${event.name}`, done: 0, total: event.rollouts }
        else if (event.type === 'phase-progress') state = { ...state, phase: event.phase, done: event.done, total: event.total }
        else if (event.type === 'rollout-end') state = { ...state, done: state.done + 1 }
        else if (event.type === 'run-end') {
          await readToEnd()
          live.value = null
          return
        } else if (event.type !== 'step-end' && event.type !== 'evaluation-end') continue
        show()
        changed()
      }
    } finally {
      ending.abort()
      stop()
      if (follower === ending) follower = null
    }
    // A server that refuses to be followed also refuses the summary, which says why.
  })().catch(() => {})
}
