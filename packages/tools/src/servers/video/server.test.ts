import { expect, test } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { drawFilm } from '../../testing/draw-words.ts'
import { openMediaContext, wave } from '../../testing/media-context.ts'
import { html, json, openStandIn, type StandInRequest } from '../../testing/stand-in.ts'
import { isJailed } from '../../testing/tier.ts'
import { callServerTool } from '../../testing/tool-context.ts'
import { openWebContext } from '../../testing/web-context.ts'
import type { ServerToolContext } from '../../tool-server.ts'
import { frameTimes } from './frames.ts'
import { videoServer } from './server.ts'

interface Part {
  readonly type: string
  readonly text?: string
}

const partsOf = ({ body }: StandInRequest) => (JSON.parse(body) as { messages: { content: Part[] }[] }).messages[1]!.content
/** A model that tells how many pictures it got; it does not answer to "never". */
const look = (request: StandInRequest) => {
  const parts = partsOf(request)
  const pictures = parts.filter(({ type }) => type === 'image_url').length
  return parts[0]!.text === 'never' ? null : json({ choices: [{ message: { content: `${pictures} pictures.` } }] })
}
const open = (overrides: Partial<ServerToolContext> = {}) => openMediaContext('video', look, {}, overrides)
const source = (seconds: number) => ['-f', 'lavfi', '-i', `testsrc=duration=${seconds}:size=64x48:rate=10`]

/** A context with a video of three seconds, which stores a whole picture each second. */
async function openVideo(overrides: Partial<ServerToolContext> = {}) {
  const context = await open(overrides)
  await context.ffmpeg(...source(3), '-c:v', 'mpeg4', '-g', '10', '-bitexact', 'video.mkv')
  return context
}

const call = async (tool: string, input: object, context: ServerToolContext) =>
  (await callServerTool(videoServer, tool, { ...input }, context)).text
const question = { video_url: 'video.mkv', question: 'What is seen?' }

test('pictures are spread over the whole span, a limited number of them', () => {
  expect(frameTimes(0, 4, 1)).toEqual([0.5, 1.5, 2.5, 3.5])
  expect(frameTimes(10, 10.1, 1)).toEqual([10.05])
  const many = frameTimes(0, 2_400, 5)
  expect([many.length, many[0], many.at(-1)]).toEqual([24, 50, 2_350])
})

if (isJailed) {
  describeToolServer({
    server: videoServer,
    examples: {
      analyze_video: { ...question, sample_rate: 0.3 },
      summarize_video: { video_url: 'video.mkv', sample_rate: 0.3 },
      extract_keyframes: { video_path: 'video.mkv', target_time: 1, window_size: 1 },
    },
    open: openVideo,
    slow: { tool: 'analyze_video', input: { ...question, question: 'never', sample_rate: 0.3 } },
  })

  test('a model sees pictures of the video with their times, and nothing is left behind', async () => {
    await using context = await openVideo()
    expect(await call('analyze_video', { ...question, start_time: 1 }, context)).toBe('2 pictures.')
    const parts = partsOf(context.requests[0]!)
    expect(parts.map(({ type, text }) => text ?? type)).toEqual(['What is seen?', 'At 1.5 s:', 'image_url', 'At 2.5 s:', 'image_url'])
    const { output } = await context.workspace.run({ command: ['ls', '-A'], timeoutMs: 60_000 }, context.signal)
    expect(output).toBe('video.mkv\n')
    await expect(call('analyze_video', { ...question, start_time: 4 }, context)).rejects.toThrow('it lasts 3 s')
  })

  test('whole pictures around a time are saved, or the one at the time', async () => {
    await using context = await openVideo()
    const input = { video_path: 'video.mkv', target_time: 1.5, window_size: 2 }
    expect(await call('extract_keyframes', input, context)).toBe('keyframes/video-1s.jpg, at 1 s\nkeyframes/video-2s.jpg, at 2 s')
    expect(await call('extract_keyframes', { ...input, window_size: 0, output_dir: 'out' }, context)).toBe('out/video-1.5s.jpg, at 1.5 s')
    const bytes = await context.workspace.get('out/video-1.5s.jpg', 1_000_000, context.signal)
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xff, 0xd8, 0xff]))
    await expect(call('extract_keyframes', { ...input, target_time: 3 }, context)).rejects.toThrow('The video lasts 3 s')
  })

  test('a video that lies about its length is looked at as long as it is, and the answer says so', async () => {
    await using context = await openVideo()
    const bytes = await context.workspace.get('video.mkv', 10_000_000, context.signal)
    // The element of Matroska with the length is a double of milliseconds.
    const at = bytes.indexOf(Buffer.from('448988', 'hex'))
    expect(bytes.readDoubleBE(at + 3)).toBe(3_000)
    bytes.writeDoubleBE(36_000_000, at + 3)
    await context.workspace.put('video.mkv', bytes, context.signal)
    expect(await call('summarize_video', { video_url: 'video.mkv' }, context)).toMatch(
      /^3 pictures\.\n\n\[The file claims to last 36000 s, and what it holds ends after (2\.9\d*|3) s\.\]$/,
    )
  })

  test.each([
    [
      'a playlist that names a local file',
      Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nvideo.mkv\n'),
      'is a list of other files',
    ],
    ['sound alone', wave(1), 'has no moving picture'],
    ['text', Buffer.from('words'), 'could not be read as sound or video'],
  ])('%s is an error that the model reads', async (_, bytes, message) => {
    await using context = await open()
    await context.workspace.put('video.mkv', bytes, context.signal)
    for (const [tool, input] of [
      ['analyze_video', question],
      ['extract_keyframes', { video_path: 'video.mkv', target_time: 0 }],
    ] as const)
      await expect(call(tool, input, context)).rejects.toMatchObject({ name: 'ToolError', message: expect.stringContaining(message) })
  })

  test('a picture is shown until the next one begins, wherever the times of the file begin', async () => {
    await using context = await open()
    await context.workspace.put('film.gif', await drawFilm(['LATE TEA', 'A TALENT', 'NEAT ALE']), context.signal)
    // Its first picture has the time 1.4 s, and its pictures are stored in another order than they are shown in.
    await context.ffmpeg(...source(3), '-c:v', 'mpeg2video', '-g', '10', '-bf', '2', '-bitexact', 'film.ts')
    const at = async (video_path: string, target_time: number) => {
      await call('extract_keyframes', { video_path, target_time, window_size: 0 }, context)
      return await context.workspace.get(`keyframes/film-${target_time}s.jpg`, 1_000_000, context.signal)
    }
    const [first, second, third] = [await at('film.gif', 0), await at('film.gif', 1), await at('film.gif', 2)]
    expect(new Set([first, second, third].map(String)).size).toBe(3)
    expect([await at('film.gif', 0.9), await at('film.gif', 1.5), await at('film.gif', 2.9)]).toEqual([first, second, third])
    const [before, after] = [await at('film.ts', 1.2), await at('film.ts', 1.3)]
    expect(before.equals(after)).toBe(false)
    expect(await at('film.ts', 1.25)).toEqual(before)
  })

  test('a video file of the web is fetched; a page and a streaming site are errors that say so', async () => {
    await using context = await openVideo()
    const bytes = await context.workspace.get('video.mkv', 10_000_000, context.signal)
    const headers = { 'content-type': 'video/x-matroska' }
    const site = await openStandIn(({ url: { pathname } }) => {
      if (pathname === '/video.mkv') return { headers, body: bytes }
      return pathname === '/damaged.mkv' ? { headers, body: 'words' } : html('<p>Watch here.</p>')
    })
    const web = await openWebContext({ web: { mirrors: { 'https://films.test': site.url } } })
    const online = { ...context, outward: web.outward }
    const ask = (video_url: string) => call('analyze_video', { ...question, video_url, sample_rate: 0.3 }, online)
    expect(await ask('https://films.test/video.mkv')).toBe('1 pictures.')
    await expect(ask('https://films.test/damaged.mkv')).rejects.toThrow(/^The fetched file could not be read as sound or video/)
    await expect(ask('https://films.test/watch')).rejects.toThrow(
      'The address leads to a page and not to a file, and videos of streaming sites are not read',
    )
    await expect(ask('https://www.youtube.com/watch?v=1')).rejects.toThrow('www.youtube.com is a streaming site')
    await expect(ask('http://169.254.169.254/video.mp4')).rejects.toThrow('is not on the public web')
    await web.close()
    await site.close()
  })
} else
  test('in a simulation the server says what is missing', async () => {
    await using context = await open()
    await context.workspace.put('video.mkv', wave(1), context.signal)
    await expect(call('extract_keyframes', { video_path: 'video.mkv', target_time: 0 }, context)).rejects.toMatchObject({
      name: 'ToolError',
      message: expect.stringMatching(/^ffprobe, which sound and video need, does not run .* \(apt-get install bubblewrap ffmpeg\)\.$/),
    })
  })
