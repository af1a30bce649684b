import { posix } from 'node:path'
import { type CommandResult, ToolError } from '@aworld-train/core'
import { needsPrograms } from '../sandbox/needs-programs.ts'
import { temporaryFolder } from '../temporary-folder.ts'
import type { ServerToolContext } from '../tool-server.ts'

/** The program, and how long it may take. */
export interface MediaRun {
  readonly program: 'ffmpeg' | 'ffprobe'
  readonly arguments: readonly string[]
  readonly timeoutMs: number
}

/** Kinds of files that are opened. Playlists and other lists are none of them, because what they name would be opened too. */
const formats = 'aac,ac3,aiff,amr,ape,asf,au,avi,caf,flac,flv,gif,matroska,mov,mp3,mpeg,mpegts,ogg,w64,wav,wv'
const opening = ['-protocol_whitelist', 'file,pipe', '-format_whitelist', formats, '-max_pixels', '40000000']

/** A file in messages for the model. A temporary one has no name there, because it would be another each time. */
export const nameOf = (path: string) => (path.startsWith(temporaryFolder) ? 'The fetched file' : JSON.stringify(path.slice(0, 200)))

/** A file of the workspace as ffmpeg opens it: by its absolute path, and not by the protocol that its name may begin with. */
export function mediaFile(path: string): string {
  const absolute = posix.resolve('/workspace', path)
  if (absolute.startsWith('/workspace/')) return absolute
  throw new ToolError(`${nameOf(path)} is outside of the workspace; use a path below /workspace.`)
}

/** Arguments that open a file, whose kind its bytes decide. */
export const openMedia = (path: string): string[] => [...opening, '-i', `file:${mediaFile(path)}`]

/**
 * Runs ffmpeg or ffprobe in the lease, after all other work of the machine. Rejects with a ToolError if it is missing, is out of time or
 * refuses the file.
 */
export async function runFfmpeg(path: string, run: MediaRun, { workspace, tier, signal }: ServerToolContext): Promise<CommandResult> {
  const { program, timeoutMs } = run
  if (tier === 'simulated') throw new ToolError(needsPrograms(`${program}, which sound and video need,`, ['ffmpeg']))
  const command = ['nice', '-n', '10', program, '-v', 'error', ...run.arguments] as const
  const result = await workspace.run({ command, timeoutMs }, signal)
  const { exitCode, output, timedOut } = result
  if (exitCode === 0) return result
  const file = nameOf(path)
  if (timedOut) throw new ToolError(`${file} takes longer than ${timeoutMs / 1_000} s to read; ask for a shorter part, or another file.`)
  if (exitCode === 127)
    throw new ToolError(`${program} is not installed where the environment runs; its operator runs: apt-get install ffmpeg`)
  if (output.includes('No such file')) throw new ToolError(`There is no file ${file} in the workspace.`)
  if (output.includes('not on whitelist'))
    throw new ToolError(
      `${file} is a list of other files, such as a playlist, or no recording; only files that hold sound or pictures are read.`,
    )
  if (overLimits.has(exitCode))
    throw new ToolError(`${file} takes more time or memory than the workspace has; ask for a shorter part, or another file.`)
  throw new ToolError(
    `${file} could not be read as sound or video: ${lastLine(output)}. It is damaged or of another kind; try another copy.`,
  )
}

/** Exit codes after a signal of the kernel's for a limit. ffmpeg itself catches that for time on the processor, and ends with 255. */
const overLimits: ReadonlySet<number> = new Set([137, 152, 255])

const lastLine = (output: string) =>
  (output.trim().split('\n').at(-1) ?? '')
    .replace(/^\[[^\]]*\] |^file:\S+: /g, '')
    .replace(/\.$/, '')
    .slice(0, 200) || 'it has nothing of the kind'
