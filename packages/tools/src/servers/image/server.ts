import { z } from 'zod'
import { filePath, readNatively } from '../../documents/document-tool.ts'
import { defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'

const facts = z.object({
  format: z.string(),
  width: z.int(),
  height: z.int(),
  channels: z.int(),
  color_space: z.string(),
  has_alpha: z.boolean(),
  density: z.number().nullable(),
  orientation: z.int(),
  pages: z.int(),
})
const imageText = z.object({ text: z.string(), confidence: z.int() })
const imageView = z.object({ mediaType: z.string(), base64: z.string() })

const read = (path: string, options: object, context: ServerToolContext) => readNatively(path, import.meta.url, options, context)

const extractTextOcr = defineTool({
  name: 'extract_text_ocr',
  description: 'Reads the printed text in an image (PNG, JPEG, WebP, GIF, AVIF, TIFF, SVG). It says how sure it is, from 0 to 100.',
  input: z.object({
    file_path: filePath,
    language: z
      .string()
      .regex(/^[a-z]{3}(_[a-z]+)?$/, 'write a language as "eng"')
      .default('eng')
      .describe('Language of the text in three letters; only "eng" is always there.'),
    preprocess: z.boolean().default(true).describe('Makes small text larger and the contrast stronger before it is read.'),
  }),
  output: imageText,
  call: async ({ file_path, language, preprocess }, context) =>
    imageText.parse(await read(file_path, { what: 'text', language, preprocess }, context)),
  toText: ({ text, confidence }) => (text === '' ? 'No text was found in the image.' : `${text}\n\n[Confidence ${confidence} of 100.]`),
})

const analyzeImageAi = defineTool({
  name: 'analyze_image_ai',
  description: 'Has a model look at an image of the workspace (PNG, JPEG, WebP, GIF, AVIF, TIFF, SVG) and answer a question about it.',
  input: z.object({
    file_path: filePath,
    task: z
      .string()
      .min(1)
      .max(20_000)
      .default('Describe the image: what it shows, the text in it, and how its parts stand to each other.')
      .describe('What to find out about the image.'),
  }),
  output: z.object({ answer: z.string(), model: z.string() }),
  async call({ file_path, task }, context) {
    const model = await context.model('image')
    const { mediaType, base64 } = imageView.parse(await read(file_path, { what: 'view' }, context))
    const system = 'You look at an image and answer what you are asked about it. Say only what can be seen in it.'
    const user = [{ text: task }, { image: Buffer.from(base64, 'base64'), mediaType }]
    return { answer: await model.complete({ system, user, temperature: 0 }), model: model.name }
  },
  toText: ({ answer }) => answer,
})

const getImageMetadata = defineTool({
  name: 'get_image_metadata',
  description: 'Tells the format of an image, its size in pixels, its colours, and how many pages it has.',
  input: z.object({ file_path: filePath }),
  output: facts,
  call: async ({ file_path }, context) => facts.parse(await read(file_path, { what: 'metadata' }, context)),
  toText: ({ format, width, height, channels, color_space, has_alpha, density, orientation, pages }) =>
    [
      `${format}, ${width} x ${height} pixels`,
      `${channels} channels of ${color_space}${has_alpha ? ', one of them transparency' : ''}`,
      ...(density === null ? [] : [`${density} pixels per inch`]),
      ...(orientation === 1 ? [] : [`EXIF orientation ${orientation}`]),
      ...(pages === 1 ? [] : [`${pages} pages`]),
    ].join('\n'),
})

export const imageServer: ToolServer = {
  name: 'media-image-server',
  scope: 'files',
  description: 'Reads text in images, and has a configured model look at them.',
  needs: [
    { anyOf: ['image-model'], remedy: 'Set IMAGE_LLM_BASE_URL and IMAGE_LLM_MODEL_NAME for analyze_image_ai; the others work without.' },
  ],
  tools: [extractTextOcr, analyzeImageAi, getImageMetadata],
}
