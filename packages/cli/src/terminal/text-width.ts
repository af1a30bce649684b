import { stripVTControlCharacters } from 'node:util'

const zeroWidth = /^[\p{Mn}\p{Me}\p{Cf}]$/u
/** East Asian wide and fullwidth characters, and emoji (Unicode Standard Annex 11). */
const doubleWidth =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]$/u

/** Width of a text on a terminal in columns, without its colours. */
export function textWidth(text: string): number {
  let width = 0
  for (const character of stripVTControlCharacters(text)) width += characterWidth(character)
  return width
}

/** Cuts a text to at most `columns`, with an ellipsis in place of the missing part. Colours stay, and end with it. */
export function fitText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text
  let width = 0
  let kept = ''
  for (const part of text.split(/(\u001b\[[0-9;]*m)/u)) {
    if (part.startsWith('\u001b')) {
      kept += part
      continue
    }
    for (const character of part) {
      width += characterWidth(character)
      if (width > columns - 1) return `${kept}…${text.includes('\u001b') ? '\u001b[0m' : ''}`
      kept += character
    }
  }
  return kept
}

/**
 * Breaks a line that begins with a label of `labelWidth` columns at spaces into lines of at most `columns`. Later lines are aligned with
 * the text of the first.
 */
export function wrapLabelled(text: string, columns: number, labelWidth = 9): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/(?<=\S )(?=\S)/)) {
    if (textWidth(line) > labelWidth && textWidth(line + word.trimEnd()) > columns) {
      lines.push(line.trimEnd())
      line = ' '.repeat(labelWidth)
    }
    line += word
  }
  return [...lines, line].join('\n')
}

function characterWidth(character: string): number {
  if (zeroWidth.test(character)) return 0
  return doubleWidth.test(character) ? 2 : 1
}
