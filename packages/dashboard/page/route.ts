// Every page and every filter is an address: #/RUN/page/key?filter=value
import { computed, signal } from '@preact/signals'
import { addressOfRuns } from '../src/address-of-runs.ts'

const hash = signal(location.hash)
addEventListener('hashchange', arrive)

/** Shows the page of the browser's address from its top, unless it is already on screen. */
function arrive(): void {
  if (hash.value === location.hash) return
  hash.value = location.hash
  scrollTo(0, 0)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const route = computed(() => {
  const [path = '', search = ''] = hash.value.replace(/^#\/?/, '').split('?')
  const [run = '', page = '', ...key] = path.split('/').map(decode)
  return { run, page: page || (run === '' ? 'runs' : 'overview'), key: key.join('/'), query: new URLSearchParams(search) }
})

/** Goes to an address at once. The browser reports a new address later, and until then a pressed key would be the old page's. */
export const go = (address: string) => {
  location.hash = address
  arrive()
}

const address = (run: string, page: string, key: string, query: Record<string, string | undefined>) => {
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  ).toString()
  const parts = [run, ...(page === 'overview' ? [] : [page]), ...(key === '' ? [] : key.split('/'))]
  return `#/${parts.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`
}

/** Changes filters of this address, without a new entry in the history. */
export function filter(changes: Record<string, string | null>): void {
  const { run, page, key, query } = route.value
  const next = Object.fromEntries(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete next[name]
    else next[name] = value
  }
  history.replaceState(null, '', run === '' ? `#/${search(next)}` : address(run, page, key, next))
  hash.value = location.hash
}
const search = (query: Record<string, string>) => {
  const text = new URLSearchParams(query).toString()
  return text === '' ? '' : `?${text}`
}

const here = () => route.value.run
export const hrefs = {
  runs: () => '#/',
  overlay: addressOfRuns,
  overview: (run = here()) => address(run, 'overview', '', {}),
  /** `place` is the number of a step, or the split of an evaluation. */
  step: (place: string, query: { group?: string; show?: string } = {}) => address(here(), 'step', place, query),
  rollout: (key: string, query: { invocation?: string; call?: string } = {}, run = here()) => address(run, 'rollout', key, query),
  tokens: (key: string, query: { at?: string; by?: string; turn?: string; invocation?: string } = {}) =>
    address(here(), 'tokens', key, query),
  /** `in` is the run of the other rollout, if it is another one. */
  compare: (key: string, other: string, query: { invocation?: string; in?: string } = {}, run = here()) =>
    address(run, 'compare', key, { with: other, ...query }),
  health: () => address(here(), 'health', '', {}),
}
