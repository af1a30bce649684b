import { posix } from 'node:path'
import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { filePath, listSupportedFormats } from '../../documents/document-tool.ts'
import { readMedia } from '../../media/read-media.ts'
import { mediaFile, openMedia, runFfmpeg } from '../../media/run-ffmpeg.ts'
import { inTemporaryFolder } from '../../temporary-folder.ts'
import { defineFormattedTool, defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'

/** Largest recording that a model gets: services of this kind take 25 MB. */
const maxBytes = 24_000_000
const maxFileBytes = 256 * 2 ** 20
const workTimeoutMs = 300_000

/** Kinds of files that models take as they are, in ffmpeg's words, with the endings of their names. */
const endings: Readonly<Record<string, string>> = {
  wav: 'wav',
  mp3: 'mp3',
  flac: 'flac',
  ogg: 'ogg',
  'mov,mp4,m4a,3gp,3g2,mj2': 'm4a',
  'matroska,webm': 'webm',
}

/** Speech as a model needs it, so small that two hours of it are sent at once. */
const speech = ['-ac', '1', '-ar', '16000', '-c:a', 'libopus', '-b:a', '24k', '-map_metadata', '-1']
/** Leaves out what would differ from one time to the next, such as versions and serial numbers. */
const repeatable = ['-fflags', '+bitexact', '-flags:a', '+bitexact']

/** The recording as it is, so that a recorded answer to it is found again on every machine; a copy of one that is no recording of sound alone or too large. */
async function forModel(
  path: string,
  context: ServerToolContext,
): Promise<{ name: string; bytes: Buffer; seconds: number; notices: string[] }> {
  const media = await readMedia(path, 'audio', context)
  const facts = { seconds: media.seconds, notices: [...media.notices] }
  const ending = media.video === null ? endings[media.format] : undefined
  if (ending !== undefined) {
    const bytes = await context.workspace.get(path, maxFileBytes, context.signal)
    if (bytes.length <= maxBytes) return { name: `audio.${ending}`, bytes, ...facts }
  }
  return await inTemporaryFolder(context, async (folder) => {
    const copy = `${folder}/audio.ogg`
    const words = ['-nostdin', ...openMedia(path), '-map', '0:a:0', ...speech, ...repeatable, copy]
    await runFfmpeg(path, { program: 'ffmpeg', arguments: words, timeoutMs: workTimeoutMs }, context)
    return { name: 'audio.ogg', bytes: await context.workspace.get(copy, maxBytes, context.signal), ...facts }
  })
}

const transcribeAudio = defineFormattedTool({
  name: 'transcribe_audio',
  description: 'Writes down what is said in a recording of the workspace, also in the sound of a video. At most two hours.',
  input: z.object({ file_path: filePath }),
  output: z.object({ text: z.string(), seconds: z.number(), model: z.string(), notices: z.array(z.string()) }),
  async call({ file_path }, context) {
    const model = await context.model('audio')
    const { name, bytes, seconds, notices } = await forModel(file_path, context)
    return { text: (await model.transcribe({ name, bytes })).trim(), seconds, model: model.name, notices }
  },
  toText: ({ text, notices }) => [text || 'Nothing is said in the recording.', ...notices.map((line) => `[${line}]`)].join('\n\n'),
})

const extractAudioMetadata = defineTool({
  name: 'extract_audio_metadata',
  description: 'Tells the length of a recording, its encoding, its sample rate and channels, and its tags, such as title and artist.',
  input: z.object({ file_path: filePath }),
  output: z.object({
    format: z.string(),
    codec: z.string(),
    sample_rate: z.int(),
    channels: z.int(),
    seconds: z.number(),
    tags: z.record(z.string(), z.string()),
    notices: z.array(z.string()),
  }),
  async call({ file_path }, context) {
    const media = await readMedia(file_path, 'audio', context)
    const { codec_name = 'unknown', sample_rate = '0', channels = 0 } = media.audio ?? {}
    const { format, seconds, tags } = media
    return { format, codec: codec_name, sample_rate: Number(sample_rate), channels, seconds, tags, notices: [...media.notices] }
  },
  toText: ({ format, codec, sample_rate, channels, seconds, tags, notices }) =>
    [
      `${seconds} s of ${codec} in ${format.split(',', 1)[0]}, ${sample_rate} Hz, ${channels === 1 ? '1 channel' : `${channels} channels`}`,
      ...Object.entries(tags).map(([name, value]) => `${name}: ${value.slice(0, 500)}`),
      ...notices.map((line) => `[${line}]`),
    ].join('\n'),
})

const trimmedEndings = ['wav', 'mp3', 'flac', 'ogg', 'm4a']

const trimAudio = defineTool({
  name: 'trim_audio',
  description: 'Saves a part of a recording as a file of its own in the workspace.',
  input: z.object({
    file_path: filePath,
    start_time: z.number().min(0).max(1e6).describe('Where the part begins, in seconds.'),
    duration: z.number().positive().max(1e6).optional().describe('Seconds that it lasts; by default to the end.'),
    output_file_path: z
      .string()
      .max(4_096)
      .regex(new RegExp(`\\.(${trimmedEndings.join('|')})$`), `end the name with one of .${trimmedEndings.join(', .')}`)
      .optional()
      .describe('Where to save it; by default beside the recording, with the times in its name.'),
  }),
  output: z.object({ path: z.string(), seconds: z.number() }),
  async call({ file_path, start_time, duration, output_file_path }, context) {
    const media = await readMedia(file_path, 'audio', context)
    if (start_time >= media.seconds)
      throw new ToolError(`The part begins at ${start_time} s, and the recording ends after ${media.seconds} s; begin it earlier.`)
    const part = Math.min(duration ?? Number.POSITIVE_INFINITY, media.seconds - start_time)
    const path = output_file_path ?? partName(file_path, start_time, start_time + part)
    const target = mediaFile(path)
    if (target === mediaFile(file_path)) throw new ToolError('The part would replace its recording; save it under another name.')
    const times = ['-ss', String(start_time), '-t', String(part)]
    await runFfmpeg(
      file_path,
      {
        program: 'ffmpeg',
        arguments: ['-nostdin', ...times, ...openMedia(file_path), '-map', '0:a:0', ...repeatable, '-y', `file:${target}`],
        timeoutMs: workTimeoutMs,
      },
      context,
    )
    const { seconds } = await readMedia(path, 'audio', context)
    return { path, seconds }
  },
  toText: ({ path, seconds }) => `Saved ${seconds} s as ${path}.`,
})

function partName(path: string, start: number, end: number): string {
  const { dir, name, ext } = posix.parse(path)
  const rounded = (seconds: number) => String(Math.round(seconds * 1_000) / 1_000)
  const ending = trimmedEndings.includes(ext.slice(1).toLowerCase()) ? ext.toLowerCase() : '.wav'
  return posix.join(dir, `${name}-${rounded(start)}-${rounded(end)}${ending}`)
}

export const audioServer: ToolServer = {
  name: 'media-audio-server',
  scope: 'files',
  description: 'Has a configured model write down what is said in recordings, and trims them.',
  needs: [
    { anyOf: ['audio-model'], remedy: 'Set AUDIO_LLM_BASE_URL and AUDIO_LLM_MODEL_NAME for transcribe_audio; the others work without.' },
  ],
  tools: [
    transcribeAudio,
    extractAudioMetadata,
    trimAudio,
    listSupportedFormats({
      '.wav, .mp3, .flac, .ogg, .m4a, .webm': 'sound, which a model gets as it is',
      '.aac, .aiff, .amr, .ape, .au, .caf, .wma, .wv': 'sound in other encodings',
      '.mp4, .mov, .mkv, .avi, .flv, .mpeg, .ts, .wmv': 'the sound of a video',
    }),
  ],
}
