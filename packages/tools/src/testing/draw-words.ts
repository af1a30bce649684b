import sharp, { type Sharp } from 'sharp'

/** Letters as lines, because a machine may have no fonts. */
const letters: Readonly<Record<string, string>> = {
  A: 'M0 60L22 0L44 60M8 40H36',
  E: 'M36 0H0V60H36M0 30H30',
  L: 'M0 0V60H36',
  N: 'M0 60V0L40 60V0',
  T: 'M0 0H44M22 0V60',
  ' ': '',
}

/** Draws words of the letters A, E, L, N and T as an SVG. */
function drawLetters(words: string): Buffer {
  const paths = [...words].map((letter, index) => `<path transform="translate(${40 + index * 60} 40)" d="${letters[letter]}"/>`)
  const size = `width="${words.length * 60 + 80}" height="140"`
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" ${size}><g fill="none" stroke="black" stroke-width="8">${paths.join('')}</g></svg>`,
  )
}

/** An image of words as a scanner makes it. */
export const drawWords = (words: string): Sharp => sharp(drawLetters(words)).flatten({ background: 'white' }).withMetadata({ density: 150 })

/** A film that shows one line of words after the other, each of the same length for a second, as an animated GIF. */
export async function drawFilm(lines: readonly string[]): Promise<Buffer> {
  const pictures = await Promise.all(lines.map((line) => drawWords(line).png().toBuffer()))
  return await sharp(pictures, { join: { animated: true } })
    .gif({ delay: lines.map(() => 1_000), loop: 1 })
    .toBuffer()
}
