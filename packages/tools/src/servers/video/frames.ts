import type { Media } from '../../media/read-media.ts'
import { openMedia, runFfmpeg } from '../../media/run-ffmpeg.ts'
import type { ServerToolContext } from '../../tool-server.ts'

/** Most pictures that one question is about. */
export const maxFrames = 24
const frameTimeoutMs = 60_000

/** Times in the middle of equal parts of a span: one part for each picture, `rate` of them a second, and not more than `maxFrames`. */
export function frameTimes(start: number, end: number, rate: number): number[] {
  const count = Math.max(1, Math.min(maxFrames, Math.round((end - start) * rate)))
  return Array.from({ length: count }, (_, index) => roundTime(start + ((index + 0.5) * (end - start)) / count))
}

export const roundTime = (seconds: number) => Math.round(seconds * 1_000) / 1_000

/** Saves the picture of a video at a time as a JPEG of at most `maxSide` pixels a side. Resolves to false if there is none at that time. */
export async function saveFrame(
  path: string,
  media: Media,
  { seconds, maxSide, target }: { readonly seconds: number; readonly maxSide: number; readonly target: string },
  context: ServerToolContext,
): Promise<boolean> {
  const scale = `scale='min(${maxSide},iw)':'min(${maxSide},ih)':force_original_aspect_ratio=decrease:flags=bicubic+bitexact+accurate_rnd`
  const picture = ['-map', '0:V:0', '-frames:v', '1', '-vf', scale, '-fflags', '+bitexact', '-q:v', '3', '-f', 'image2', '-update', '1']
  // A picture is shown until the next one. ffmpeg drops those that begin before the time to which it goes, and times have six digits only.
  const from = Math.max(0, (await shownSince(path, media, seconds, context)) - 0.001)
  const words = ['-nostdin', '-ss', String(from), ...openMedia(path), ...picture, '-y', `file:${target}`]
  await runFfmpeg(path, { program: 'ffmpeg', arguments: words, timeoutMs: frameTimeoutMs }, context)
  const { exitCode } = await context.workspace.run({ command: ['test', '-s', target], timeoutMs: frameTimeoutMs }, context.signal)
  return exitCode === 0
}

/** Pictures are stored in another order than they are shown in, but not further apart than this, in seconds. */
const reordering = 5

/** The time at which the picture begins that is shown at a time. */
async function shownSince(path: string, media: Media, seconds: number, context: ServerToolContext): Promise<number> {
  const times = await timesIn(path, media, seconds, seconds + reordering, ['-show_entries', 'packet=pts_time'], context)
  return Math.max(...times.filter((time) => time <= seconds), 0)
}

/** Times of the pictures that a video stores whole, within a span. */
export async function keyframeTimes(path: string, media: Media, start: number, end: number, context: ServerToolContext): Promise<number[]> {
  const whole = ['-skip_frame', 'nokey', '-show_entries', 'frame=best_effort_timestamp_time']
  const times = (await timesIn(path, media, start, end, whole, context)).map(roundTime)
  return times.filter((time) => time >= start && time <= end).slice(0, maxFrames)
}

/** Times that ffprobe prints, from the last whole picture before `from` on. */
async function timesIn(
  path: string,
  { start }: Media,
  from: number,
  to: number,
  entries: readonly string[],
  context: ServerToolContext,
): Promise<number[]> {
  const words = ['-select_streams', 'V:0', ...entries, '-of', 'csv=p=0', '-read_intervals', `${from + start}%${to + start}`]
  const run = { program: 'ffprobe', arguments: [...words, ...openMedia(path)], timeoutMs: frameTimeoutMs } as const
  const { output } = await runFfmpeg(path, run, context)
  return [...output.matchAll(/^-?\d+(?:\.\d+)?/gm)].map(([time]) => Number(time) - start)
}

/** The part of a video between two times. */
export function spanOf({ seconds }: Media, start: number, end: number | undefined): { start: number; end: number } | null {
  const last = Math.min(end ?? seconds, seconds)
  return start < last ? { start, end: last } : null
}
