import { desktopFrameKey, type ToolImage } from '@aworld-train/core'
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Lease } from '../leases/lease.ts'

/** Largest frame that is kept, in bytes. Most take 20,000; one of a photograph may take more than all else that a rollout keeps. */
const maxFrameBytes = 200_000

/** Adds what the lease's desktop shows after a call to its result, out of sight of models, if it has changed. */
export async function withFrame(result: CallToolResult, lease: Lease, signal: AbortSignal): Promise<CallToolResult> {
  const frame = lease.ended ? null : await (await lease.desktop())?.frame(AbortSignal.any([signal, lease.signal]))
  if (!frame || frame.length > maxFrameBytes) return result
  const image: ToolImage = { mimeType: 'image/png', data: frame.toString('base64'), shows: 'desktop' }
  return { ...result, _meta: { ...result._meta, [desktopFrameKey]: image } }
}
