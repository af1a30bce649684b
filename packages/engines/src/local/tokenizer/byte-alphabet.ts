/**
 * The printable character of each byte in byte-level vocabularies (GPT-2, `bytes_to_unicode`). Printable Latin-1 stands for itself, and the
 * other 68 bytes are U+0100 and up, in order.
 */
export function byteAlphabet(): string[] {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++))
}

const isPrintable = (byte: number): boolean => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
