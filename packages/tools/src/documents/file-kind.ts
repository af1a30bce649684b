import { Unreadable } from './unreadable.ts'

/** Formats of Office Open XML, which the readers read. */
export type OfficeFormat = 'docx' | 'pptx' | 'xlsx'

export type FileKind =
  | OfficeFormat
  | 'doc'
  | 'odt'
  | 'rtf'
  | 'epub'
  | 'xls'
  | 'ods'
  | 'ppt'
  | 'odp'
  | 'text'
  | 'pdf'
  | 'archive'
  | 'compound'
  | 'encrypted'
  | 'image'
  | 'binary'

const signatures: readonly (readonly [FileKind, string])[] = [
  ['rtf', '{\\rtf'],
  ['image', '\x89PNG'],
  ['image', '\xff\xd8\xff'],
  ['image', 'GIF8'],
  ['binary', '\x1f\x8b'],
  ['binary', '\x7fELF'],
  ['binary', 'RIFF'],
  ['binary', 'OggS'],
  ['binary', 'ID3'],
  ['binary', 'SQLite format 3'],
]

const officeFolders: readonly (readonly [FileKind, string])[] = [
  ['docx', 'word/'],
  ['pptx', 'ppt/'],
  ['xlsx', 'xl/'],
]

/** Media types in the entry `mimetype`, which is not compressed. */
const mediaTypes: readonly (readonly [FileKind, string])[] = [
  ['odt', 'application/vnd.oasis.opendocument.text'],
  ['ods', 'application/vnd.oasis.opendocument.spreadsheet'],
  ['odp', 'application/vnd.oasis.opendocument.presentation'],
  ['epub', 'application/epub+zip'],
]
const entries = [...officeFolders, ...mediaTypes.map(([kind, type]) => [kind, `mimetype${type}`] as const)]

/**
 * Tells the kind by the first entry in a known folder, or that holds a known media type. An embedded document comes later, and a truncated
 * file has no directory.
 */
function archiveKind(bytes: Buffer): FileKind {
  for (let at = 0; at >= 0; at = bytes.indexOf('PK\x03\x04', at + 4)) {
    const start = bytes.toString('latin1', at + 30, at + 100)
    const kind = entries.find(([, entry]) => start.startsWith(entry))?.[0]
    if (kind !== undefined) return kind
  }
  return 'archive'
}

/** Streams by which a compound file is told. Those of embedded documents come later. */
const streams: readonly (readonly [FileKind, string])[] = [
  ['encrypted', 'EncryptedPackage'],
  ['doc', 'WordDocument'],
  ['ppt', 'PowerPoint Document'],
  ['xls', 'Workbook'],
  ['xls', 'Book'],
]

function compoundKind(bytes: Buffer): FileKind {
  const found = streams
    .map(([kind, stream]) => ({ kind, at: bytes.indexOf(Buffer.from(`${stream}\0`, 'utf16le')) }))
    .filter(({ at }) => at >= 0)
  return found.toSorted((a, b) => a.at - b.at)[0]?.kind ?? 'compound'
}

/** The kind of a file by its bytes, whatever its name says. */
export function fileKind(bytes: Buffer): FileKind {
  const start = bytes.toString('latin1', 0, 1024)
  if (start.startsWith('PK\x03\x04') || start.startsWith('PK\x05\x06')) return archiveKind(bytes)
  if (start.startsWith('\xd0\xcf\x11\xe0')) return compoundKind(bytes)
  // Readers of PDF accept a header after lines of another protocol, or after a byte order mark.
  if (/(^|[\r\n\0]|\xef\xbb\xbf)%PDF-\d/.test(start)) return 'pdf'
  return signatures.find(([, signature]) => start.startsWith(signature))?.[0] ?? 'text'
}

const remedies: Readonly<Record<FileKind, string>> = {
  text: 'is plain text: read it with extract_text_content',
  pdf: 'is a PDF: read it with convert_document_to_markdown',
  docx: 'is a Word document: read it with extract_docx_content',
  pptx: 'is a PowerPoint presentation: read it with extract_pptx_content',
  xlsx: 'is an Excel workbook: read it with extract_csv_content',
  archive: 'is a ZIP archive that is no Office file: unpack it in the terminal',
  doc: 'is a Word document of 97 to 2003: read it with extract_docx_content',
  odt: 'is an OpenDocument text: read it with extract_docx_content',
  rtf: 'is a text in RTF: read it with extract_docx_content',
  epub: 'is an EPUB book: read it with extract_docx_content',
  xls: 'is an Excel workbook of 97 to 2003: read it with extract_csv_content',
  ods: 'is an OpenDocument spreadsheet: read it with extract_csv_content',
  ppt: 'is a PowerPoint presentation of 97 to 2003: read it with extract_pptx_content',
  odp: 'is an OpenDocument presentation: read it with extract_pptx_content',
  compound: 'is a compound file of an old program that is no document of Office',
  encrypted:
    'is a file of Office with a password: pass that to extract_docx_content, extract_csv_content or extract_pptx_content, whichever reads it',
  image: 'is an image, not a document',
  binary: 'is a binary file, not a document',
}

/** Refuses an empty file and a file of another kind. Returns the kind. */
export function expectKind(file: string, bytes: Buffer, kinds: readonly FileKind[]): FileKind {
  if (bytes.length === 0) throw new Unreadable(`${file} is empty: it has 0 bytes.`)
  const kind = fileKind(bytes)
  if (!kinds.includes(kind)) throw new Unreadable(`${file} ${remedies[kind]}.`)
  return kind
}
