import type { ModelRole, ServerToolContext } from '../tool-server.ts'
import { openServiceContext } from './model-context.ts'
import type { StandInAnswer, StandInRequest } from './stand-in.ts'

/** A context whose workspace has files, with a model of the role that answers as `answer` does. */
export async function openMediaContext(
  role: ModelRole,
  answer: (request: StandInRequest) => StandInAnswer | null,
  files: Readonly<Record<string, Buffer>>,
  overrides: Partial<ServerToolContext> = {},
) {
  const context = await openServiceContext(role, answer, overrides)
  const { signal } = new AbortController()
  for (const [path, bytes] of Object.entries(files)) await context.workspace.put(path, bytes, signal)
  return {
    ...context,
    /** Makes a file of the workspace. */
    async ffmpeg(...words: readonly string[]) {
      const command = ['ffmpeg', '-v', 'error', '-nostdin', '-y', ...words] as const
      const { exitCode, output } = await context.workspace.run({ command, timeoutMs: 120_000 }, signal)
      if (exitCode !== 0) throw new Error(output)
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

/** A WAV file of a tone. */
export function wave(seconds: number, rate = 8_000): Buffer {
  const samples = Math.round(seconds * rate)
  const bytes = Buffer.alloc(44 + samples * 2)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(36 + samples * 2, 4)
  bytes.write('WAVEfmt ', 8, 'latin1')
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(rate, 24)
  bytes.writeUInt32LE(rate * 2, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36, 'latin1')
  bytes.writeUInt32LE(samples * 2, 40)
  for (let index = 0; index < samples; index++)
    bytes.writeInt16LE(Math.round(12_000 * Math.sin((index * 2 * Math.PI * 440) / rate)), 44 + index * 2)
  return bytes
}
