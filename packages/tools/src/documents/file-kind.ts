import { Unreadable } from './unreadable.ts'

export type FileKind = 'text' | 'pdf' | 'docx' | 'pptx' | 'xlsx' | 'archive' | 'office97' | 'encrypted' | 'image' | 'binary'

const signatures: readonly (readonly [FileKind, string])[] = [
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

/** Tells the kind by the first entry in a known folder. An embedded document comes later, and a truncated file has no directory. */
function archiveKind(bytes: Buffer): FileKind {
  for (let at = 0; at >= 0; at = bytes.indexOf('PK\x03\x04', at + 4)) {
    const name = bytes.toString('latin1', at + 30, at + 35)
    const kind = officeFolders.find(([, folder]) => name.startsWith(folder))?.[0]
    if (kind !== undefined) return kind
  }
  return 'archive'
}

/** The kind of a file by its bytes, whatever its name says. */
export function fileKind(bytes: Buffer): FileKind {
  const start = bytes.toString('latin1', 0, 1024)
  if (start.startsWith('PK\x03\x04') || start.startsWith('PK\x05\x06')) return archiveKind(bytes)
  if (start.startsWith('\xd0\xcf\x11\xe0')) return bytes.includes(Buffer.from('EncryptedPackage', 'utf16le')) ? 'encrypted' : 'office97'
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
  office97: 'is in the format of Office 97 to 2003, which is not read here: convert it to .docx, .pptx or .xlsx',
  encrypted: 'is encrypted with a password: ask for a copy without one',
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
