import { decodeText } from '../../documents/decode-text.ts'
import { expectKind } from '../../documents/file-kind.ts'
import { type Page, pageOfText } from '../../documents/page.ts'

export interface TextOptions {
  /** Name of the file in messages. */
  readonly file: string
  readonly encoding: string | null
  readonly offset: number
  readonly limit: number
}

export interface TextDocument extends Page {
  readonly encoding: string
  readonly lines: number
  readonly notices: readonly string[]
}

/** Reads one page of a text in any encoding. */
export default async function parse(bytes: Buffer, { file, encoding, ...place }: TextOptions): Promise<TextDocument> {
  expectKind(file, bytes, ['text'])
  const { text, ...facts } = await decodeText(file, bytes, encoding)
  const lines = text.split(/\r\n|\r|\n/).length - (/[\r\n]$/.test(text) ? 1 : 0)
  return { ...pageOfText(file, text, place), ...facts, lines }
}
