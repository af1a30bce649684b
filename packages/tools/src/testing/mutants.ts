import { utils, write } from '@e965/xlsx'
import fc from 'fast-check'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pdfServer } from '../servers/pdf/server.ts'
import { pptxServer } from '../servers/pptx/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import type { ToolServer } from '../tool-server.ts'
import { buildPdf } from './build-pdf.ts'
import { buildZip } from './build-zip.ts'
import {
  docxFiles,
  docxImage,
  docxTable,
  footnoteReference,
  paragraph,
  pptxFiles,
  shape,
  slideChart,
  slideGroup,
  slideTable,
} from './office-files.ts'

export interface Mutant {
  readonly server: ToolServer
  readonly bytes: Buffer
}

interface Edit {
  readonly kind: 'overwrite' | 'insert' | 'delete' | 'repeat' | 'cut'
  /** Place of the edit, as a share of the bytes. */
  readonly at: number
  readonly length: number
  readonly token: string
}

/** Tokens that break readers: signs of each format, extremes of numbers, and characters that end strings or names. */
const tokens = [
  '\0',
  '\xff\xfe',
  '\n',
  ',',
  ';',
  '"',
  '""',
  '<',
  '>',
  '/>',
  '</',
  '&',
  '&#x110000;',
  '&#0;',
  '&amp;',
  '<![CDATA[',
  ']]>',
  '<!--',
  '<?xml version="1.1"?>',
  '-1',
  '0',
  '65536',
  '99999999999999999999',
  '1e999',
  'NaN',
  '__proto__',
  'constructor',
  '../../../etc/passwd',
  'PK\x03\x04',
  'PK\x05\x06',
  '<<',
  '>>',
  '/Length 9999999',
  '/Count -1',
  '/Kids [2 0 R]',
  '/Filter /FlateDecode',
  'endobj',
  'stream\n',
  'xref',
  '%%EOF',
  '<w:tbl>',
  '<w:p>',
  '<a:p>',
  '<p:grpSp>',
  'r:id="rId1"',
]

/** A number of at least 0 and below 1, drawn evenly. fast-check's own prefers the ends. */
const share = fc.noBias(fc.integer({ min: 0, max: 99_999 })).map((part) => part / 100_000)

const edits: fc.Arbitrary<readonly Edit[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('overwrite', 'insert', 'delete', 'repeat', 'cut'),
    at: share,
    length: fc.integer({ min: 1, max: 200 }),
    token: fc.oneof(fc.constantFrom(...tokens), fc.string({ unit: 'binary', maxLength: 8 })),
  }),
  { minLength: 1, maxLength: 3 },
)

function apply(bytes: Buffer, list: readonly Edit[]): Buffer {
  return list.reduce((current, { kind, at, length, token }) => {
    const start = Math.floor(at * current.length)
    const end = Math.min(current.length, start + length)
    const inserted = Buffer.from(token, 'latin1')
    const [before, piece, after] = [current.subarray(0, start), current.subarray(start, end), current.subarray(end)]
    if (kind === 'overwrite') return Buffer.concat([before, inserted, current.subarray(start + inserted.length)])
    if (kind === 'insert') return Buffer.concat([before, inserted, piece, after])
    if (kind === 'repeat') return Buffer.concat([before, ...Array<Buffer>(length).fill(piece), after])
    // Most cuts take only a piece of the end, so that more than headers is left.
    if (kind === 'cut') return current.subarray(0, Math.max(start, current.length - length))
    return Buffer.concat([before, after])
  }, bytes)
}

const rows = [
  ['City', 'People'],
  ['Ulm', '126000'],
]

/** The parts of a valid file of each format; one part if it is no archive. */
const originals: readonly (readonly [server: ToolServer, files: Readonly<Record<string, string | Buffer>>])[] = [
  [csvServer, { csv: 'city,people,note\nUlm,126000,"a, b"\n"Bonn",336000,"c ""d"""\n' }],
  [csvServer, { tsv: 'a\tb\n1\t2\n3\t4\n' }],
  [csvServer, workbookFiles()],
  [docxServer, docxFiles([paragraph('Budget', 'Heading1'), paragraph('4711'), docxTable(rows), docxImage, footnoteReference].join(''))],
  [
    pptxServer,
    pptxFiles([
      { shapes: shape('Title 1', 'Results') + slideTable(rows), note: 'hello' },
      { shapes: slideGroup(shape('x', 'inner')) + slideChart },
    ]),
  ],
  [pdfServer, { pdf: buildPdf([[{ text: 'Annual report', x: 72, y: 780, size: 24 }], [{ text: 'words', x: 72, y: 700, size: 12 }]]) }],
  [txtServer, { txt: Buffer.from('\ufeffGrüße, 東京 🚀\n', 'utf16le') }],
]

function workbookFiles(): Record<string, Buffer> {
  const sheet = utils.aoa_to_sheet([...rows, [new Date(0), true]])
  sheet['B3'] = { t: 'n', f: 'SUM(B2:B2)', v: 1 }
  const bytes = write({ SheetNames: ['One'], Sheets: { One: sheet } }, { type: 'buffer', bookType: 'xlsx', compression: false }) as Buffer
  return unpackStored(bytes)
}

/** Unpacks an archive without compression. */
function unpackStored(archive: Buffer): Record<string, Buffer> {
  const files: Record<string, Buffer> = {}
  for (let at = 0; archive.readUInt32LE(at) === 0x04034b50; ) {
    const start = at + 30 + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28)
    const end = start + archive.readUInt32LE(at + 18)
    files[archive.toString('utf8', at + 30, at + 30 + archive.readUInt16LE(at + 26))] = archive.subarray(start, end)
    at = end
  }
  return files
}

/** Files of every format with a few changes each, in the bytes of the file or in one of its parts before packing. */
export const mutants: fc.Arbitrary<Mutant> = fc
  .record({ original: fc.constantFrom(...originals), part: share, edits, packed: fc.boolean() })
  .map(({ original: [server, files], part, edits: list, packed }) => {
    const names = Object.keys(files)
    const pack = (parts: Readonly<Record<string, string | Buffer>>) =>
      names.length === 1 ? Buffer.from(parts[names[0]!]!) : buildZip(parts)
    if (packed) return { server, bytes: apply(pack(files), list) }
    const name = names[Math.floor(part * names.length)]!
    return { server, bytes: pack({ ...files, [name]: apply(Buffer.from(files[name]!), list) }) }
  })
