import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openMedia, runFfmpeg } from '../../media/run-ffmpeg.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openMediaContext, wave } from '../../testing/media-context.ts'
import { json, type StandInRequest } from '../../testing/stand-in.ts'
import { isJailed } from '../../testing/tier.ts'
import { callServerTool } from '../../testing/tool-context.ts'
import type { ServerToolContext } from '../../tool-server.ts'
import { audioServer } from './server.ts'

/** A model that tells how large the recording is that it got, and under which name; it does not answer to one of 5 s. */
const listen = ({ bytes }: StandInRequest) =>
  bytes.length > 200_000 ? null : json({ text: ` ${/filename="([^"]+)"/.exec(bytes.toString('latin1'))?.[1]} ` })
const open = (files: Readonly<Record<string, Buffer>>, overrides: Partial<ServerToolContext> = {}) =>
  openMediaContext('audio', listen, files, overrides)

async function call(tool: string, files: Readonly<Record<string, Buffer>>, input: object) {
  await using context = await open(files)
  return await callServerTool(audioServer, tool, { ...input }, context)
}

const file_path = 'a.wav'

if (isJailed) {
  describeToolServer({
    server: audioServer,
    examples: {
      transcribe_audio: { file_path },
      extract_audio_metadata: { file_path },
      trim_audio: { file_path, start_time: 1, duration: 0.5 },
      list_supported_formats: {},
    },
    open: (overrides) => open({ [file_path]: wave(2), 'long.wav': wave(5, 48_000) }, overrides),
    slow: { tool: 'transcribe_audio', input: { file_path: 'long.wav' } },
  })

  test('a model gets a recording as it is, and of the sound of a video a small copy that is gone afterwards', async () => {
    await using context = await open({ [file_path]: wave(2) })
    const transcribe = async (path: string) => (await callServerTool(audioServer, 'transcribe_audio', { file_path: path }, context)).text
    expect(await transcribe(file_path)).toBe('audio.wav')
    await context.ffmpeg('-f', 'lavfi', '-i', 'testsrc=duration=2', '-i', file_path, '-c:a', 'aac', 'video.mp4')
    const texts = [await transcribe('video.mp4'), await transcribe('video.mp4')]
    expect(texts).toEqual(['audio.ogg', 'audio.ogg'])
    expect(context.requests.at(-1)!.bytes).toEqual(context.requests.at(-2)!.bytes)
    const { output } = await context.workspace.run({ command: ['ls', '-A'], timeoutMs: 60_000 }, context.signal)
    expect(output).toBe('a.wav\nvideo.mp4\n')
  })

  test('the facts of a recording are told, with its tags', async () => {
    await using context = await open({ [file_path]: wave(2) })
    await context.ffmpeg('-i', file_path, '-metadata', 'title=Tides', '-ac', '2', 'tides.flac')
    const { text } = await callServerTool(audioServer, 'extract_audio_metadata', { file_path: 'tides.flac' }, context)
    expect(text).toMatch(/^2 s of flac in flac, 8000 Hz, 2 channels\n(.*\n)*TITLE: Tides/i)
  })

  test('a part is saved beside its recording or where it is asked for, and plays as long', async () => {
    await using context = await open({ [file_path]: wave(2) })
    const trim = async (input: object) => (await callServerTool(audioServer, 'trim_audio', { file_path, ...input }, context)).text
    expect(await trim({ start_time: 0.5, duration: 1 })).toBe('Saved 1 s as a-0.5-1.5.wav.')
    expect(await trim({ start_time: 1.5, output_file_path: 'parts.flac' })).toBe('Saved 0.5 s as parts.flac.')
    await expect(trim({ start_time: 2 })).rejects.toThrow('The part begins at 2 s, and the recording ends after 2 s; begin it earlier.')
    await expect(trim({ start_time: 0, output_file_path: './a.wav' })).rejects.toThrow('would replace its recording')
  })

  test('the length of a recording is that of its sound, whatever its head claims', async () => {
    const claims = wave(2)
    // The length of its sound is a number in the head of the file.
    claims.writeUInt32LE(8_000 * 2 * 3_600, 40)
    claims.writeUInt32LE(8_000 * 2 * 3_600 + 36, 4)
    expect((await call('extract_audio_metadata', { [file_path]: claims }, { file_path })).text).toContain('2 s of pcm_s16le')
  })

  test.each([
    ['a recording of no length', wave(0), 'has no length: there is nothing in its audio'],
    ['an empty file', Buffer.alloc(0), 'could not be read as sound or video'],
    ['text', Buffer.from('words and no sound'), 'could not be read as sound or video'],
    [
      'a playlist that names a local file',
      Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n'),
      'is a list of other files',
    ],
    ['a list of files to join', Buffer.from("ffconcat version 1.0\nfile 'secret.wav'\n"), 'is a list of other files'],
  ])('%s is an error that the model reads', async (_, bytes, message) => {
    for (const tool of ['transcribe_audio', 'extract_audio_metadata'])
      await expect(call(tool, { [file_path]: bytes, 'secret.wav': wave(1) }, { file_path })).rejects.toMatchObject({
        name: 'ToolError',
        message: expect.stringContaining(message),
      })
  })

  test.each([
    ['nowhere.wav', 'There is no file "nowhere.wav" in the workspace.'],
    ['/etc/passwd', '"/etc/passwd" is outside of the workspace'],
  ])('%s is not read', async (path, message) => {
    await expect(call('extract_audio_metadata', {}, { file_path: path })).rejects.toThrow(message)
  })

  test('a call that is cancelled or out of time leaves no process', async () => {
    const controller = new AbortController()
    await using context = await open({}, { signal: controller.signal })
    await context.ffmpeg('-f', 'lavfi', '-i', 'anoisesrc=r=16000:d=3600', 'long.wav')
    const running = () =>
      readdirSync('/proc').filter((name) => {
        try {
          return /^\d+$/.test(name) && /ffmpeg.*long\.wav/s.test(readFileSync(`/proc/${name}/cmdline`, 'utf8'))
        } catch {
          return false
        }
      })
    const copy = { program: 'ffmpeg', arguments: [...openMedia('long.wav'), '-y', 'long.flac'], timeoutMs: 200 } as const
    await expect(runFfmpeg('long.wav', copy, context)).rejects.toThrow('"long.wav" takes longer than 0.2 s to read')
    await expect.poll(running).toEqual([])
    const trim = callServerTool(audioServer, 'trim_audio', { file_path: 'long.wav', start_time: 0, output_file_path: 'long.m4a' }, context)
    const outcome = trim.catch((error: unknown) => error)
    await expect.poll(running).not.toEqual([])
    const reason = new Error('cancelled')
    controller.abort(reason)
    expect(await outcome).toBe(reason)
    await expect.poll(running).toEqual([])
  })

  test('where ffmpeg is not installed, the answer names the package', async () => {
    await using context = await open({ [file_path]: wave(1) })
    const { workspace } = context
    // A path without programs of its own stands for a machine without them.
    const run: typeof workspace.run = ({ command, ...rest }, signal) =>
      workspace.run({ ...rest, command: ['/usr/bin/env', 'PATH=/nowhere', '/usr/bin/nice', ...command.slice(1)] }, signal)
    const bare = { ...context, workspace: { ...workspace, run } }
    await expect(callServerTool(audioServer, 'extract_audio_metadata', { file_path }, bare)).rejects.toThrow(
      'ffprobe is not installed where the environment runs; its operator runs: apt-get install ffmpeg',
    )
  })
} else
  test('in a simulation the server says what is missing', async () => {
    await expect(call('extract_audio_metadata', { [file_path]: wave(1) }, { file_path })).rejects.toMatchObject({
      name: 'ToolError',
      message: expect.stringMatching(/^ffprobe, which sound and video need, does not run .* \(apt-get install bubblewrap ffmpeg\)\.$/),
    })
  })
