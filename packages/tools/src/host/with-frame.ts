import { desktopFrameKey, orAborted, type ToolImage } from '@aworld-train/core'
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Lease } from '../leases/lease.ts'

/** Largest frame that is kept, in bytes. Most take 20,000; one of a photograph may take more than all else that a rollout keeps. */
const maxFrameBytes = 200_000

/**
 * Adds what the lease's desktop shows after a call to its result, out of sight of models, if it has changed. Never rejects: what happens to
 * the desktop or the lease meanwhile does not undo the call.
 */
export async function withFrame(result: CallToolResult, lease: Lease, signal: AbortSignal): Promise<CallToolResult> {
  const until = AbortSignal.any([signal, lease.signal])
  try {
    const desktop = await orAborted(lease.desktop(), until)
    const frame = await desktop?.frame(until)
    if (!frame || frame.length > maxFrameBytes) return result
    const image: ToolImage = { mimeType: 'image/png', data: frame.toString('base64'), shows: 'desktop' }
    return { ...result, _meta: { ...result._meta, [desktopFrameKey]: image } }
  } catch (error) {
    if (!until.aborted) lease.report(error instanceof Error ? error : new Error(String(error)))
    return result
  }
}
