import { posix } from 'node:path'
import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { filePath } from '../../documents/document-tool.ts'
import { type Media, readMedia } from '../../media/read-media.ts'
import { mediaFile } from '../../media/run-ffmpeg.ts'
import { inTemporaryFolder } from '../../temporary-folder.ts'
import { defineFormattedTool, defineTool, type ModelPart, type ServerToolContext, type ToolServer } from '../../tool-server.ts'
import { frameTimes, keyframeTimes, maxFrames, roundTime, saveFrame, spanOf } from './frames.ts'

/** Largest video that is fetched, and largest picture that is taken from one, in bytes. */
const maxVideoBytes = 50 * 2 ** 20
const maxPictureBytes = 4_000_000
const downloadTimeoutMs = 120_000
/** Longest side of a picture that a model gets, and of one that is saved. */
const viewSide = 768
const savedSide = 4_096

const streamingSites =
  /(^|\.)(youtube\.com|youtu\.be|vimeo\.com|twitch\.tv|tiktok\.com|bilibili\.com|dailymotion\.com|instagram\.com|facebook\.com)$/

/** Fetches a video of the web into a file. */
async function fetchVideo(url: string, target: string, { outward, workspace, signal }: ServerToolContext): Promise<void> {
  const streams = (what: string) =>
    new ToolError(
      `${what}, and videos of streaming sites are not read; give the address of a video file, or the path of one in the workspace.`,
    )
  if (URL.canParse(url) && streamingSites.test(new URL(url).hostname)) throw streams(`${new URL(url).hostname} is a streaming site`)
  const answer = await outward.fetch(url, { maxBytes: maxVideoBytes, timeoutMs: downloadTimeoutMs }, signal)
  if (answer.status < 200 || answer.status >= 300)
    throw new ToolError(`The video was answered with status ${answer.status}; check the address.`)
  if (/^(text\/html|application\/xhtml)/.test(answer.contentType)) throw streams('The address leads to a page and not to a file')
  await workspace.put(target, answer.bytes, signal)
}

interface VideoQuestion {
  readonly video_url: string
  readonly sample_rate: number
  readonly start_time: number
  readonly end_time?: number | undefined
}

/** Asks the model about pictures of a video. */
async function askAbout({ video_url, ...span }: VideoQuestion, question: string, context: ServerToolContext) {
  const model = await context.model('video')
  return await inTemporaryFolder(context, async (folder) => {
    const isRemote = /^[a-z][a-z0-9+.-]*:\/\//i.test(video_url)
    const path = isRemote ? `${folder}/video` : video_url
    if (isRemote) await fetchVideo(video_url, path, context)
    const media = await readMedia(path, 'video', context)
    const { times, parts, notices } = await takePictures(path, media, span, folder, context)
    const system =
      'You see pictures of a video in their order, each with its time. Answer what you are asked about the video, and name times. Say only what can be seen.'
    const answer = await model.complete({ system, user: [{ text: question }, ...parts], temperature: 0 })
    return { answer, model: model.name, seconds: media.seconds, times, notices: [...media.notices, ...notices] }
  })
}

async function takePictures(
  path: string,
  media: Media,
  { sample_rate, start_time, end_time }: Omit<VideoQuestion, 'video_url'>,
  folder: string,
  context: ServerToolContext,
): Promise<{ times: number[]; parts: ModelPart[]; notices: string[] }> {
  const span = spanOf(media, start_time, end_time)
  if (span === null)
    throw new ToolError(`There is no part of the video from ${start_time} s to ${end_time ?? 'its end'}: it lasts ${media.seconds} s.`)
  const wanted = frameTimes(span.start, span.end, sample_rate)
  const times: number[] = []
  const parts: ModelPart[] = []
  for (const seconds of wanted) {
    const target = `${folder}/${times.length}.jpg`
    if (!(await saveFrame(path, media, { seconds, maxSide: viewSide, target }, context))) continue
    const image = await context.workspace.get(target, maxPictureBytes, context.signal)
    times.push(seconds)
    parts.push({ text: `At ${seconds} s:` }, { image, mediaType: 'image/jpeg' })
  }
  if (times.length === 0) throw new ToolError('No picture of the video could be read; it is damaged. Try another copy.')
  const every = roundTime((span.end - span.start) / wanted.length)
  const notices = [
    ...(wanted.length === maxFrames && every * sample_rate > 1 ? [`${maxFrames} pictures were looked at, one every ${every} s.`] : []),
    ...(times.length < wanted.length ? [`${wanted.length - times.length} of ${wanted.length} pictures could not be read.`] : []),
  ]
  return { times, parts, notices }
}

const questionFields = {
  video_url: z.string().min(1).max(8_000).describe('Path of a video in the workspace, or the http or https address of a video file.'),
  sample_rate: z
    .number()
    .positive()
    .max(30)
    .default(1)
    .describe(`Pictures that are looked at for each second; at most ${maxFrames} in all.`),
  start_time: z.number().min(0).max(1e6).default(0).describe('Where to begin, in seconds.'),
  end_time: z.number().positive().max(1e6).optional().describe('Where to end, in seconds; by default at the end of the video.'),
}
const videoAnswer = z.object({
  answer: z.string(),
  model: z.string(),
  seconds: z.number(),
  times: z.array(z.number()),
  notices: z.array(z.string()),
})
const answerText = ({ answer, notices }: { readonly answer: string; readonly notices: readonly string[] }) =>
  [answer, ...notices.map((line) => `[${line}]`)].join('\n\n')

const analyzeVideo = defineFormattedTool({
  name: 'analyze_video',
  description: 'Has a model look at pictures of a video and answer a question. The sound is not heard: transcribe_audio reads that.',
  input: z.object({ ...questionFields, question: z.string().min(1).max(20_000).describe('What to find out about the video.') }),
  output: videoAnswer,
  call: ({ question, ...rest }, context) => askAbout(rest, question, context),
  toText: answerText,
})

const summarizeVideo = defineFormattedTool({
  name: 'summarize_video',
  description: 'Has a model look at pictures of a video and tell what happens in it. The sound is not heard.',
  input: z.object(questionFields),
  output: videoAnswer,
  call: (input, context) => askAbout(input, 'Tell what the video shows, from its beginning to its end, in a few paragraphs.', context),
  toText: answerText,
})

const extractKeyframes = defineTool({
  name: 'extract_keyframes',
  description: 'Saves pictures of a video around a time as JPEG files in the workspace, which analyze_image_ai and extract_text_ocr read.',
  input: z.object({
    video_path: filePath,
    target_time: z.number().min(0).max(1e6).describe('The time in seconds.'),
    window_size: z.number().min(0).max(600).default(5).describe('Seconds around it from which pictures are taken, half of them before.'),
    output_dir: z.string().min(1).max(4_096).default('keyframes').describe('Folder in the workspace.'),
  }),
  output: z.object({ frames: z.array(z.object({ path: z.string(), seconds: z.number() })), notices: z.array(z.string()) }),
  async call({ video_path, target_time, window_size, output_dir }, context) {
    const media = await readMedia(video_path, 'video', context)
    if (target_time >= media.seconds) throw new ToolError(`The video lasts ${media.seconds} s, so it has no picture at ${target_time} s.`)
    const folder = mediaFile(posix.join(output_dir, 'x')).slice(0, -2)
    const { exitCode } = await context.workspace.run({ command: ['mkdir', '-p', folder], timeoutMs: 30_000 }, context.signal)
    if (exitCode !== 0) throw new ToolError(`The folder ${JSON.stringify(output_dir.slice(0, 200))} cannot be made; choose another.`)
    const around = [Math.max(0, target_time - window_size / 2), Math.min(media.seconds, target_time + window_size / 2)] as const
    const stored = await keyframeTimes(video_path, media, ...around, context)
    const times = stored.length > 0 ? stored : [target_time]
    const frames: { path: string; seconds: number }[] = []
    for (const seconds of times) {
      const name = `${posix.parse(video_path).name}-${seconds}s.jpg`
      if (await saveFrame(video_path, media, { seconds, maxSide: savedSide, target: `${folder}/${name}` }, context))
        frames.push({ path: posix.join(output_dir, name), seconds })
    }
    if (frames.length === 0) throw new ToolError(`No picture could be read around ${target_time} s; try another time.`)
    return { frames, notices: [...media.notices] }
  },
  toText: ({ frames, notices }) =>
    [...frames.map(({ path, seconds }) => `${path}, at ${seconds} s`), ...notices.map((line) => `[${line}]`)].join('\n'),
})

export const videoServer: ToolServer = {
  name: 'media-video-server',
  scope: 'files',
  description: 'Has a configured model look at videos, and saves pictures of them.',
  needs: [
    {
      anyOf: ['video-model'],
      remedy: 'Set VIDEO_LLM_BASE_URL and VIDEO_LLM_MODEL_NAME for analyze_video and summarize_video; extract_keyframes works without.',
    },
  ],
  tools: [analyzeVideo, summarizeVideo, extractKeyframes],
}
