import { isUtf8 } from 'node:buffer'
import { detect } from 'chardet'
import { Unreadable } from './unreadable.ts'

export interface DecodedText {
  readonly text: string
  readonly encoding: string
  /** Remarks on parts that could not be decoded or have no meaning in text, one sentence each. */
  readonly notices: readonly string[]
}

/** Names of encodings that Python knows and the Encoding Standard does not. */
const pythonNames: Readonly<Record<string, string>> = {
  'utf-8-sig': 'utf-8',
  'latin-1': 'latin1',
  'utf-16-le': 'utf-16le',
  'utf-16-be': 'utf-16be',
}

/** Decodes bytes as `encoding`, or as the encoding that they appear to have. NUL characters and bytes without a character become U+FFFD. */
export function decodeText(file: string, bytes: Buffer, encoding: string | null): DecodedText {
  const decoder = decoderOf(file, encoding ?? detectEncoding(bytes))
  const decoded = decoder.decode(bytes)
  const text = decoded.replaceAll('\0', '\ufffd')
  const replaced = text.split('\ufffd').length - 1
  const notices = replaced === 0 ? [] : [`${replaced} characters are shown as \ufffd: NUL, or no ${decoder.encoding}.`]
  return { text, encoding: decoder.encoding, notices }
}

function decoderOf(file: string, name: string) {
  const label = name.trim().toLowerCase().replaceAll('_', '-')
  try {
    return new TextDecoder(pythonNames[label] ?? label)
  } catch {
    throw new Unreadable(
      `${file} cannot be decoded as "${name.slice(0, 40)}". Pass another encoding, such as utf-8, utf-16, windows-1252, shift_jis or gb18030.`,
    )
  }
}

const sampleBytes = 64 * 1024

function detectEncoding(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const sample = bytes.subarray(0, sampleBytes)
  const [even, odd] = nulShares(sample)
  if (odd > 0.3 && even < 0.1) return 'utf-16le'
  if (even > 0.3 && odd < 0.1) return 'utf-16be'
  if (isUtf8(bytes)) return 'utf-8'
  return detect(sample) ?? 'windows-1252'
}

/** Shares of NUL bytes at even and odd positions. Western text in UTF-16 has a NUL in every second byte. */
function nulShares(sample: Buffer): [even: number, odd: number] {
  const counts: [number, number] = [0, 0]
  for (let index = 0; index < sample.length; index += 1) if (sample[index] === 0) counts[index % 2]! += 1
  const half = Math.max(1, sample.length / 2)
  return [counts[0] / half, counts[1] / half]
}
