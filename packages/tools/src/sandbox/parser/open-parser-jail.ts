import { availableParallelism } from 'node:os'
import { createSlots, orAborted, type ParserJail, ToolError } from '@aworld-train/core'
import { bubblewrapFailure } from '../bubblewrap/probe.ts'
import { seccompFilter } from '../bubblewrap/seccomp-filter.ts'
import { bubblewrapCommand, nodeCommand, type ParserCommand, readableFor } from './parser-command.ts'
import { type ParserLimits, runParser } from './parser-process.ts'

export interface ParserJailOptions {
  /** `auto`, the default, takes bubblewrap if this machine can run it. */
  readonly isolation?: 'auto' | 'bubblewrap' | 'node' | undefined
  readonly limits?: Partial<ParserLimits> | undefined
}

const defaultLimits: ParserLimits = { timeoutMs: 30_000, memoryBytes: 512 * 2 ** 20, answerBytes: 64 * 2 ** 20 }
/** Memory that Node takes besides the heap of its program. */
const outsideHeapMb = 128

interface Parse {
  readonly module: URL
  /** Whether the module has native addons or threads. */
  readonly isNative: boolean
  readonly bytes: Uint8Array
  readonly options: unknown
}

/** Opens a jail for parsers. Each parse has a process, and as many run at once as the machine has cores. */
export async function openParserJail({ isolation = 'auto', limits: overrides }: ParserJailOptions = {}): Promise<ParserJail> {
  const limits = { ...defaultLimits, ...overrides }
  const heapMb = Math.max(16, Math.floor(limits.memoryBytes / 2 ** 20) - outsideHeapMb)
  const probe = isolation === 'node' ? 'it was not asked for.' : await probeBubblewrap()
  if (isolation === 'bubblewrap' && probe !== null) throw new Error(`Parsers cannot run in bubblewrap: ${probe}`)
  const command: ParserCommand = probe === null ? bubblewrapCommand : nodeCommand
  const filter = probe === null ? parserFilter() : undefined
  const closing = new AbortController()
  const running = new Set<Promise<unknown>>()
  const places = createSlots(Math.max(2, availableParallelism()))
  const readable = new Map<string, readonly string[]>()

  async function start({ module, isNative, bytes, options }: Parse, signal: AbortSignal): Promise<unknown> {
    const key = `${module.href} ${isNative}`
    const paths = readable.get(key) ?? readableFor(module, isNative)
    readable.set(key, paths)
    const input = { options, bytes, filter, isNative }
    return runParser(command({ readable: paths, heapMb, module: module.href, isNative }), input, limits, signal)
  }

  async function parse(call: Parse, signal: AbortSignal): Promise<unknown> {
    const either = AbortSignal.any([signal, closing.signal])
    await places.take(either)
    const result = start(call, either)
    const settled = result.then(
      () => {},
      () => {},
    )
    running.add(settled)
    void settled.then(() => {
      running.delete(settled)
      places.give()
    })
    // A caller that goes away does not wait for the end of the process, but others wait for its place.
    return orAborted(result, either)
  }

  return {
    notices: noticesOf(probe),
    parse: (module, bytes, options, signal) => parse({ module, isNative: false, bytes, options }, signal),
    async parseNative(module, bytes, options, signal) {
      if (probe !== null) throw new ToolError(`Files of this kind are read in bubblewrap only, which this environment has not: ${probe}`)
      return await parse({ module, isNative: true, bytes, options }, signal)
    },
    async close() {
      closing.abort(new Error('The parsers are closed.'))
      await Promise.all(running)
    },
  }
}

function noticesOf(probe: string | null): string[] {
  if (probe === null) return []
  return [
    `Parsers run in a Node without permissions, not in bubblewrap: ${probe}`,
    'Node keeps them from files and programs; their network is closed by their own process.',
    ...(process.platform === 'linux' ? [] : ['Memory that parsers take beside their heap is not limited on this system.']),
  ]
}

const probeModule = new URL(import.meta.url.endsWith('.ts') ? './probe-parser.ts' : './probe-parser.js', import.meta.url)

/** No control group counts the memory of a parser. */
const parserFilter = () => seccompFilter(process.arch, { memoryIsCounted: false })

/** The reason why a parser cannot run in bubblewrap here; null if it can. */
async function probeBubblewrap(): Promise<string | null> {
  if (process.platform !== 'linux') return 'it is for Linux.'
  try {
    const command = bubblewrapCommand({ readable: readableFor(probeModule, false), heapMb: 64, module: probeModule.href, isNative: false })
    const input = { options: null, bytes: new Uint8Array(), filter: parserFilter(), isNative: false }
    await runParser(command, input, defaultLimits, AbortSignal.timeout(30_000))
    return null
  } catch (error) {
    return bubblewrapFailure(error)
  }
}
