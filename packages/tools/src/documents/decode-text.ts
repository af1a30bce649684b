import { isUtf8 } from 'node:buffer'
import iconv from 'iconv-lite'
import { Unreadable } from './unreadable.ts'

export interface DecodedText {
  readonly text: string
  readonly encoding: string
  /** Remarks on a guessed encoding, and on parts that could not be decoded or have no meaning in text, one sentence each. */
  readonly notices: readonly string[]
}

interface Decoder {
  readonly encoding: string
  decode(bytes: Buffer): string
}

/** Decodes bytes as `encoding`, or as the encoding that they appear to have. NUL characters and bytes without a character become U+FFFD. */
export async function decodeText(file: string, bytes: Buffer, encoding: string | null): Promise<DecodedText> {
  const certain = encoding ?? certainEncoding(bytes)
  const decoder = decoderOf(file, certain ?? (await guessEncoding(bytes)))
  const isGuess = certain === null && decoder.encoding !== 'utf-8'
  const text = decoder.decode(bytes).replaceAll('\0', '\ufffd')
  const replaced = text.split('\ufffd').length - 1
  const guess = `The text is not UTF-8. It was read as ${decoder.encoding}, which is a guess; if words look wrong, name its encoding.`
  return {
    text,
    encoding: decoder.encoding,
    notices: [
      ...(isGuess ? [guess] : []),
      ...(replaced === 0 ? [] : [`${replaced} characters are shown as \ufffd: NUL, or no ${decoder.encoding}.`]),
    ],
  }
}

/** The decoder of the Encoding Standard where it has one, else that of iconv. Names may have the spelling of Python. */
function decoderOf(file: string, name: string): Decoder {
  const label = name
    .trim()
    .toLowerCase()
    .replaceAll('_', '-')
    .replace(/^utf-8-sig$/, 'utf-8')
    .replace(/^latin-1$/, 'latin1')
    .replace(/^(utf-(?:16|32))-([bl]e)$/, '$1$2')
  try {
    return new TextDecoder(label)
  } catch {
    if (iconv.encodingExists(label)) return { encoding: label, decode: (bytes) => iconv.decode(bytes, label) }
    throw new Unreadable(
      `${file} cannot be decoded as "${name.slice(0, 40)}". Pass another encoding, such as utf-8, utf-16, windows-1252, shift_jis or gb18030.`,
    )
  }
}

/** Byte order marks. That of UTF-32 begins with that of UTF-16. */
const marks: readonly (readonly [encoding: string, mark: string])[] = [
  ['utf-32le', '\xff\xfe\0\0'],
  ['utf-32be', '\0\0\xfe\xff'],
  ['utf-16le', '\xff\xfe'],
  ['utf-16be', '\xfe\xff'],
]

/** Signs of an encoding other than UTF-8 in bytes that are valid UTF-8: NUL, the escape sequences of ISO 2022, and the words of UTF-7. */
const signs = /\0|\x1b[$(]|\+[A-Za-z0-9+/]{2,}-/

/** The encoding that a byte order mark names, or UTF-8 if bytes are that and nothing else; otherwise null. */
function certainEncoding(bytes: Buffer): string | null {
  const start = bytes.toString('latin1', 0, 4)
  const marked = marks.find(([, mark]) => start.startsWith(mark))
  if (marked !== undefined) return marked[0]
  return isUtf8(bytes) && !signs.test(bytes.toString('latin1')) ? 'utf-8' : null
}

/** Encodings that a text may be taken for: those of the web, of Unicode, and the DOS and Macintosh of Western and Eastern Europe. */
const guesses = [
  ...['ascii', 'utf-8', 'utf-7', 'utf-16-be', 'utf-16-le', 'utf-32-be', 'utf-32-le'],
  ...['big5hkscs', 'cp932', 'cp949', 'euc-jp', 'gb18030', 'iso-2022-jp', 'cp874', 'koi8-r', 'koi8-u', 'mac-roman'],
  ...['cp437', 'cp850', 'cp852', 'cp866', 'iso-8859-2', 'iso-8859-5', 'iso-8859-7', 'iso-8859-8', 'iso-8859-15'],
  ...Array.from({ length: 9 }, (_, index) => `windows-125${index}`),
]

const sampleBytes = 64 * 1024
/** Bytes of the sample that stand before the first sign. */
const contextBytes = 4 * 1024

async function guessEncoding(bytes: Buffer): Promise<string> {
  // The library is loaded here because its models take a tenth of a second, and most texts are UTF-8.
  const { detectAll } = await import('jschardet')
  const isPlain = isUtf8(bytes)
  const first = bytes.toString('latin1').search(isPlain ? signs : /[\x80-\xff]/)
  // Characters of UTF-32 have four bytes.
  const start = Math.max(0, first - contextBytes) & ~3
  const sample = bytes.subarray(start, start + sampleBytes)
  const found = detectAll(sample, { detectEncodings: guesses, minimumThreshold: 0 }).flatMap(({ encoding }) => encoding ?? [])
  if (isPlain) return found.find((name) => /^(utf-(7|16|32)|iso-2022)/i.test(name)) ?? 'utf-8'
  return found.find((name) => !mixesAlphabets(decoderOf('', name).decode(sample))) ?? 'windows-1252'
}

const foreign = '[\\p{Script=Cyrillic}\\p{Script=Greek}\\p{Script=Hebrew}\\p{Script=Arabic}]+'
const foreignWords = new RegExp(foreign, 'gu')
const mixedWords = new RegExp(`(?<=\\p{Script=Latin})${foreign}|${foreign}(?=\\p{Script=Latin})`, 'gu')

/** Whether most letters of another alphabet stand within words of Latin ones, as in "caf\u0439": then the guess is wrong. */
function mixesAlphabets(text: string): boolean {
  return (text.match(mixedWords)?.length ?? 0) > (text.match(foreignWords)?.length ?? 0) / 2
}
