export interface PdfLine {
  readonly text: string
  readonly x: number
  readonly y: number
  readonly size: number
}

interface PdfOptions {
  /** Whether it is encrypted. Nobody has its passwords. */
  readonly encrypted?: boolean | undefined
  /** Dictionaries of the fields of a form, which stands on the first page. */
  readonly fields?: readonly string[] | undefined
}

/** A PDF of these pages. */
export function buildPdf(pages: readonly (readonly PdfLine[])[], { encrypted = false, fields = [] }: PdfOptions = {}): Buffer {
  const references = fields.map((_, index) => `${4 + 2 * pages.length + index} 0 R`).join(' ')
  const kids = pages.map((_, index) => `${4 + 2 * index} 0 R`).join(' ')
  const objects = [
    `<< /Type /Catalog /Pages 2 0 R ${fields.length > 0 ? `/AcroForm << /Fields [${references}] >> ` : ''}>>`,
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...pages.flatMap((lines, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * index} 0 R ${index === 0 && fields.length > 0 ? `/Annots [${references}] ` : ''}>>`,
      stream(lines.map(({ text, x, y, size }) => `BT /F1 ${size} Tf ${x} ${y} Td (${text.replace(/[\\()]/g, '\\$&')}) Tj ET`).join('\n')),
    ]),
    ...fields.map((field) => `<< /Type /Annot /Subtype /Widget /Rect [72 72 200 90] ${field} >>`),
  ]
  let file = '%PDF-1.7\n'
  const offsets = objects.map((object, index) => {
    const offset = file.length
    file += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const start = file.length
  const password = 'ab'.repeat(32)
  const encryption = encrypted ? `/Encrypt << /Filter /Standard /V 1 /R 2 /O <${password}> /U <${password}> /P -4 >> /ID [<00> <00>] ` : ''
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${encryption}>>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(file, 'latin1')
}

function stream(content: string): string {
  return `<< /Length ${content.length} >>\nstream\n${content}\nendstream`
}
