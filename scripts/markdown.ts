/** For those who would edit a generated page; a reader of the page does not see it. */
export const generatedNote = '<!-- `npm run generate` writes this page from the sources. -->'

export const tableLines = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
