import { buildPdf } from '../../packages/tools/src/testing/build-pdf.ts'
import { drawFilm, drawWords } from '../../packages/tools/src/testing/draw-words.ts'
import { wave } from '../../packages/tools/src/testing/media-context.ts'
import { docx, docxTable, paragraph, pptx, shape, workbook } from '../../packages/tools/src/testing/office-files.ts'

const line = (text: string) => ({ text, x: 72, y: 700, size: 12 })

const cell = (value: string | number) =>
  typeof value === 'number' ? `<c><v>${value}</v></c>` : `<c t="inlineStr"><is><t>${value}</t></is></c>`

const sheet = (rows: readonly (readonly (string | number)[])[]) =>
  workbook(`<sheetData>${rows.map((row) => `<row>${row.map(cell).join('')}</row>`).join('')}</sheetData>`)

/** The files that tasks come with, by name. */
export const attachments: Readonly<Record<string, Buffer | string>> = {
  'harbours.csv': 'harbour,tonnage\nBergen,3950\nOstend,4120\nHull,5300\nEmden,1210\nGdynia,7740\n',
  'ferries.xlsx': sheet([
    ['harbour', 'ferries'],
    ['Bergen', 31],
    ['Ostend', 17],
    ['Hull', 8],
  ]),
  'minutes.docx': docx(
    paragraph('Minutes', 'Heading1') +
      docxTable([
        ['Role', 'Name'],
        ['Chair', 'Ada Lindqvist'],
        ['Secretary', 'Jon Aas'],
      ]),
  ),
  'talk.pptx': pptx([
    { shapes: shape('Title 1', 'The harbour') },
    { shapes: shape('Title 1', 'Its beginnings'), note: 'It was founded in 1874.' },
  ]),
  'manual.pdf': buildPdf([[line('Tide gauge')], [line('Serial number: KX-2209')]]),
  'letter.txt': Buffer.from('We shall meet at Café Müller. Bring the maps, please.\nÜbrigens: schöne Grüße!\n', 'latin1'),
  'numbers.txt': Array.from({ length: 14 }, (_, index) => `${index + 1}\n`).join(''),
  'sign.png': await drawWords('TEN TALL TALENT').png().toBuffer(),
  'bell.wav': wave(7.25),
  'film.gif': await drawFilm(['LATE TEA', 'A TALENT', 'NEAT ALE']),
  'access.log': ['10.0.0.7', '10.0.0.9', '10.0.0.7', '10.0.0.3', '10.0.0.7', '10.0.0.9'].map((each) => `${each} GET /\n`).join(''),
}

/** The text of the paper of the world. */
export const paperPdf = buildPdf([[line('We measure a drift of 43 seconds a year.')]])
