import {
  type Outward,
  orAborted,
  type ParserJail,
  type SandboxTier,
  type Slots,
  ToolError,
  type ToolImage,
  TrainError,
} from '@aworld-train/core'
import { type CallToolResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { Lease } from '../leases/lease.ts'
import type { Browsers } from '../servers/browser/browsers.ts'
import { type ModelSettings, openToolModel } from '../settings/models.ts'
import type { ModelRole, ServerToolContext } from '../tool-server.ts'
import type { OfferedTool } from './offered-tools.ts'
import { withFrame } from './with-frame.ts'

/** Parts that tools use besides the workspace of their lease. */
export interface ToolWorld {
  /** Tier of the workspaces. */
  readonly tier: SandboxTier
  readonly browsers: Browsers
  readonly outward: Outward
  readonly parsers: ParserJail
  readonly models: Readonly<Partial<Record<ModelRole, ModelSettings>>>
  /** Longest time of one call. */
  readonly callTimeoutMs: number
  /** Most calls of one lease at once. */
  readonly maxCalls: number
  /** Called with errors of connections. */
  readonly onError: (error: Error) => void
}

export interface ToolRun {
  readonly offered: OfferedTool
  readonly input: unknown
  readonly lease: Lease
  /** Owner of the shell. */
  readonly session: string
  /** Aborts when the caller cancels. */
  readonly signal: AbortSignal
}

/** Most problems that an answer shows, so that many errors do not make many kilobytes for a model to read. */
const shownProblems = 5

/**
 * Runs a tool. A problem that the model can react to is a result with `isError`. If a workspace is gone or cannot be opened, it rejects
 * with a ProtocolError whose data is an ErrorRecord; a workspace that is gone ends the lease.
 */
export async function runTool({ offered, input, lease, session, signal }: ToolRun, world: ToolWorld): Promise<CallToolResult> {
  if (lease.ended) throw toProtocolError(lease.ended)
  const parsed = offered.tool.input.safeParse(input ?? {})
  if (!parsed.success) {
    const problems = parsed.error.issues
      .slice(0, shownProblems)
      .map(({ path, message }) => (path.length > 0 ? `"${path.join('.')}": ${message}` : message))
    return toolError(`The arguments do not fit. ${problems.join('; ')}.`)
  }
  if (lease.running >= world.maxCalls) return toolError(`${lease.running} calls are running already; wait for one of them to end.`)
  const late = AbortSignal.timeout(world.callTimeoutMs)
  const release = lease.use()
  try {
    return await withFrame(
      await answer({ offered, input, lease, session, signal }, parsed.data, late, world),
      lease,
      AbortSignal.any([signal, late]),
    )
  } finally {
    release()
  }
}

/** The answer of a tool to arguments that fit. */
async function answer(
  { offered, input, lease, session, signal }: ToolRun,
  fitting: Record<string, unknown>,
  late: AbortSignal,
  world: ToolWorld,
): Promise<CallToolResult> {
  const either = AbortSignal.any([signal, lease.signal, late])
  try {
    const workspace = await orAborted(lease.workspace(), either)
    const images: ToolImage[] = []
    const outward = outwardOf(lease, world.outward)
    const context: ServerToolContext = {
      workspace,
      tier: world.tier,
      shell: () => lease.shells.open(session),
      browse: (tool, input) => world.browsers.of(workspace).call(tool, input, context),
      desktop: () => lease.desktop(),
      outward,
      egress: () => lease.egress(),
      parsers: parsersOf(lease, world.parsers),
      model: (role) => openToolModel(role, world.models[role] ?? null, outward, either),
      show: (image) => void images.push(image),
      signal: either,
    }
    const output = await orAborted(offered.tool.call(fitting, context), either)
    const texts = [offered.tool.toText(output), ...ignoredArguments(offered, input)]
    const content = [
      ...texts.map((text) => ({ type: 'text' as const, text })),
      ...images.map((image) => ({ type: 'image' as const, ...image })),
    ]
    return { content, structuredContent: output }
  } catch (error) {
    if (lease.ended) throw toProtocolError(lease.ended)
    signal.throwIfAborted()
    if (late.aborted) return toolError(`The call was ended after ${world.callTimeoutMs / 1_000} s; ask for less at a time.`)
    if (error instanceof ToolError) return toolError(error.message)
    if (error instanceof TrainError) {
      // A workspace that died is not replaced by an empty one.
      if (error.code === 'TOOL_SERVER_DIED') void lease.end(error)
      throw toProtocolError(error)
    }
    lease.report(error instanceof Error ? error : new Error(String(error)))
    throw new ProtocolError(ProtocolErrorCode.InternalError, `The tool "${offered.listing.name}" failed; the log of the server says why.`)
  }
}

/** Does work in one of a lease's places, so that much work of one lease does not hold up that of another. The last argument is its signal. */
const inPlace =
  <Arguments extends readonly [...unknown[], AbortSignal], Value>(places: Slots, work: (...args: Arguments) => Promise<Value>) =>
  async (...args: Arguments): Promise<Value> => {
    await places.take(args.at(-1) as AbortSignal)
    try {
      return await work(...args)
    } finally {
      places.give()
    }
  }

const parsersOf = ({ parserPlaces }: Lease, parsers: ParserJail): ParserJail => ({
  ...parsers,
  parse: inPlace(parserPlaces, parsers.parse),
  parseNative: inPlace(parserPlaces, parsers.parseNative),
})

const outwardOf = ({ requestPlaces }: Lease, outward: Outward): Outward => ({
  ...outward,
  fetch: inPlace(requestPlaces, outward.fetch),
  service: inPlace(requestPlaces, outward.service),
})

/** Remarks on arguments without effect, so that a model trained on other tools does not rely on them. */
function ignoredArguments({ tool }: OfferedTool, input: unknown): string[] {
  const names = Object.keys(input ?? {}).filter((name) => !Object.hasOwn(tool.input.shape, name))
  const shown = names.slice(0, shownProblems).map((name) => `no argument ${JSON.stringify(name.slice(0, 100))}`)
  return names.length === 0 ? [] : [`[The tool has ${shown.join(' and ')}; it ignored ${names.length === 1 ? 'it' : 'them'}.]`]
}

function toolError(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}

function toProtocolError(error: TrainError): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InternalError, error.message, error.toRecord())
}
