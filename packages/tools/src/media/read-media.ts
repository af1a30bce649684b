import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import type { ServerToolContext } from '../tool-server.ts'
import { nameOf, openMedia, runFfmpeg } from './run-ffmpeg.ts'

const probeTimeoutMs = 60_000

const probed = z.object({
  streams: z
    .array(
      z.object({
        codec_type: z.string().optional(),
        codec_name: z.string().optional(),
        sample_rate: z.string().optional(),
        channels: z.int().optional(),
        width: z.int().optional(),
        height: z.int().optional(),
        disposition: z.object({ attached_pic: z.int() }).optional(),
      }),
    )
    .default([]),
  format: z.object({
    format_name: z.string(),
    duration: z.string().optional(),
    start_time: z.string().optional(),
    tags: z.record(z.string(), z.string()).default({}),
  }),
})

type Stream = z.output<typeof probed>['streams'][number]

/** A recording. */
export interface Media {
  /** The kind of file, in ffmpeg's words: `mov,mp4,m4a,3gp,3g2,mj2`. */
  readonly format: string
  readonly audio: Stream | null
  /** Its moving picture; a cover is none. */
  readonly video: Stream | null
  /** Length of what it holds. */
  readonly seconds: number
  /** The time that its first packet has in the file. Times of tools count from there. */
  readonly start: number
  /** A sentence if the file claims another length. */
  readonly notices: readonly string[]
  readonly tags: Readonly<Record<string, string>>
}

/**
 * Reads what a file of the workspace holds. Its length is held against that of its packets, because the one in its head may be wrong.
 * Rejects with a ToolError if it has no stream of the wanted kind, or one without length.
 */
export async function readMedia(path: string, wanted: 'audio' | 'video', context: ServerToolContext): Promise<Media> {
  const entries =
    'format=format_name,duration,start_time:format_tags:stream=codec_type,codec_name,sample_rate,channels,width,height:stream_disposition=attached_pic'
  const probe = await runFfmpeg(
    path,
    { program: 'ffprobe', arguments: ['-show_entries', entries, '-of', 'json', ...openMedia(path)], timeoutMs: probeTimeoutMs },
    context,
  )
  const { streams, format } = parseProbe(path, probe.output)
  const audio = streams.find(({ codec_type }) => codec_type === 'audio') ?? null
  const video = streams.find(({ codec_type, disposition }) => codec_type === 'video' && disposition?.attached_pic !== 1) ?? null
  const file = nameOf(path)
  if ((wanted === 'audio' ? audio : video) === null)
    throw new ToolError(
      `${file} has no ${wanted === 'audio' ? 'sound' : 'moving picture'}; look at it with another tool, or try another file.`,
    )
  const map = wanted === 'audio' ? '0:a:0' : '0:V:0'
  const copying = ['-nostdin', ...openMedia(path), '-map', map, '-c', 'copy', '-f', 'null', '-progress', 'pipe:1', '/dev/null']
  const copy = await runFfmpeg(path, { program: 'ffmpeg', arguments: copying, timeoutMs: probeTimeoutMs }, context)
  const seconds = Number([...copy.output.matchAll(/^out_time_us=(\d+)$/gm)].at(-1)?.[1] ?? 0) / 1e6
  if (seconds === 0) throw new ToolError(`${file} has no length: there is nothing in its ${wanted}. Try another copy.`)
  const claimed = Number(format.duration ?? Number.NaN)
  const isTrue = Math.abs(claimed - seconds) <= Math.max(tolerance.seconds, tolerance.part * seconds)
  return {
    format: format.format_name,
    audio,
    video,
    seconds: Math.round((isTrue ? claimed : seconds) * 1_000) / 1_000,
    start: Number(format.start_time ?? 0) || 0,
    notices: isTrue || Number.isNaN(claimed) ? [] : [`The file claims to last ${claimed} s, and what it holds ends after ${seconds} s.`],
    tags: format.tags,
  }
}

/**
 * How far the length that a file claims may be from what its packets say, in seconds and as a part of it. Within that it is the better one,
 * because the last packet may not say how long it lasts.
 */
const tolerance = { seconds: 1, part: 0.05 }

function parseProbe(path: string, output: string): z.output<typeof probed> {
  // Complaints about a damaged file stand before the facts.
  const facts = output.slice(output.indexOf('{'))
  const parsed = probed.safeParse(jsonOf(facts))
  if (parsed.success) return parsed.data
  throw new ToolError(`${nameOf(path)} could not be read as sound or video; it is damaged or of another kind.`)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
