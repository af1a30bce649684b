import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Metadata, Sharp } from 'sharp'
import { Unreadable } from '../../documents/unreadable.ts'

export type ImageOptions = { readonly file: string } & (
  | { readonly what: 'metadata' }
  | { readonly what: 'view' }
  | { readonly what: 'text'; readonly preprocess: boolean; readonly language: string }
)

export interface ImageFacts {
  readonly format: string
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly color_space: string
  readonly has_alpha: boolean
  readonly density: number | null
  readonly orientation: number
  readonly pages: number
}

/** An image as a model takes it. */
export interface ImageView {
  readonly mediaType: string
  readonly base64: string
}

export interface ImageText {
  readonly text: string
  /** From 0 to 100. */
  readonly confidence: number
}

/** Most pixels of an image. Their memory, four bytes each and as much again for a change, is within that of a parser. */
const maxPixels = 50_000_000
/** Longest side of an image that a model gets; more is no use to it. */
const maxViewSide = 2_048
const maxViewBytes = 4_000_000
/** Longest side of an image whose text is read, and the side to which a small one grows, because letters need some twenty pixels. */
const maxTextSide = 4_096
const minTextSide = 1_600
const viewFormats: Readonly<Record<string, string>> = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' }

/** Reads an image: its facts, a view for a model, or its text. */
export default async function parse(bytes: Buffer, options: ImageOptions): Promise<ImageFacts | ImageView | ImageText> {
  const { file } = options
  if (bytes.length === 0) throw new Unreadable(`${file} is empty: it has 0 bytes.`)
  const { default: sharp } = await load('sharp', () => import('sharp'))
  sharp.concurrency(1)
  try {
    const image = sharp(bytes, { limitInputPixels: false, failOn: 'truncated' })
    const metadata = await image.metadata()
    if (options.what === 'metadata') return toFacts(metadata)
    const { width, height } = metadata
    if (width * height > maxPixels)
      throw new Unreadable(
        `${file} has ${width} x ${height} pixels; at most ${maxPixels / 1e6} million are read. Make a smaller copy in the terminal.`,
      )
    if (options.what === 'view') return await toView(bytes, image, metadata)
    const { language, preprocess } = options
    return await readText(await forText(image, metadata, preprocess), language, languageFolder(language))
  } catch (error) {
    if (error instanceof Unreadable) throw error
    throw new Unreadable(
      `${file} could not be read as an image: ${reasonOf(error)}. Images are PNG, JPEG, WebP, GIF, AVIF, TIFF or SVG; try another copy.`,
    )
  }
}

/** Loads a package that an installation may lack: it has programs for some machines only, and npm can leave it out. */
async function load<Module>(name: string, importIt: () => Promise<Module>): Promise<Module> {
  try {
    return await importIt()
  } catch {
    throw new Unreadable(`Images are read by ${name}, which the environment cannot load; its operator runs: npm install ${name}`)
  }
}

const reasonOf = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]!.replace(/\.$/, '').slice(0, 200)

function toFacts({ format, width, height, channels, space, hasAlpha, density, orientation, pages }: Metadata): ImageFacts {
  return {
    format,
    width,
    height,
    channels,
    color_space: space,
    has_alpha: hasAlpha,
    density: density ?? null,
    orientation: orientation ?? 1,
    pages: pages ?? 1,
  }
}

/** An image that a model takes as it is stays as it is, so that a recorded answer to it is found again on every machine. */
async function toView(
  bytes: Buffer,
  image: Sharp,
  { format, width, height, orientation = 1, pages = 1, hasAlpha }: Metadata,
): Promise<ImageView> {
  const mediaType = viewFormats[format]
  const isSmall = Math.max(width, height) <= maxViewSide && bytes.length <= maxViewBytes
  if (mediaType !== undefined && isSmall && orientation === 1 && pages === 1) {
    // A damaged image is an error here, as it would be for the model.
    await image.stats()
    return { mediaType, base64: bytes.toString('base64') }
  }
  const fitted = image.rotate().resize({ width: maxViewSide, height: maxViewSide, fit: 'inside', withoutEnlargement: true })
  const view = await (hasAlpha ? fitted.png() : fitted.jpeg({ quality: 90 })).toBuffer()
  return { mediaType: hasAlpha ? 'image/png' : 'image/jpeg', base64: view.toString('base64') }
}

/** Turns an image upright on white, in grey with its whole range of brightness if it is to be prepared. */
async function forText(image: Sharp, { width, height }: Metadata, preprocess: boolean): Promise<Buffer> {
  const side = Math.max(width, height)
  const target = preprocess && side < minTextSide ? Math.min(minTextSide, side * 3) : Math.min(side, maxTextSide)
  const upright = image.rotate().flatten({ background: 'white' }).resize({ width: target, height: target, fit: 'inside' })
  const prepared = preprocess ? upright.grayscale().normalize() : upright
  return await prepared.withMetadata({ density: 300 }).png({ compressionLevel: 1 }).toBuffer()
}

/** The folder with the data of a language, which is a package of its own. */
function languageFolder(language: string): string {
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`@tesseract.js-data/${language}/package.json`)), '4.0.0_best_int')
  } catch {
    throw new Unreadable(
      `The environment has no language data for "${language}" (@tesseract.js-data/${language}), so it cannot read text in it; "eng" reads Latin letters.`,
    )
  }
}

async function readText(image: Buffer, language: string, langPath: string): Promise<ImageText> {
  const { createWorker, OEM } = await load('tesseract.js', () => import('tesseract.js'))
  // Without a handler it throws errors where nobody catches them.
  const worker = await createWorker(language, OEM.LSTM_ONLY, { langPath, cacheMethod: 'none', errorHandler: () => {} })
  try {
    const { data } = await worker.recognize(image)
    return { text: data.text.trim(), confidence: Math.round(data.confidence) }
  } finally {
    await worker.terminate()
  }
}
