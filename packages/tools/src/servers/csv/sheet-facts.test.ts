import { type CellObject, utils, type WorkSheet, write } from '@e965/xlsx'
import { expect, test } from 'vitest'
import { buildZip } from '../../testing/build-zip.ts'
import { readFile } from '../../testing/read-file.ts'
import { csvServer } from './server.ts'
import { columnName, factsOf } from './sheet-facts.ts'

const plain = { include_statistics: false }
const read = (sheets: Readonly<Record<string, WorkSheet>>, settings = {}) =>
  readFile(csvServer, write({ SheetNames: Object.keys(sheets), Sheets: { ...sheets } }, { type: 'buffer', bookType: 'xlsx' }) as Buffer, {
    ...plain,
    ...settings,
  })

test('rows keep their numbers where a sheet does not begin in its first cell or leaves rows out', async () => {
  const sheet = utils.sheet_add_aoa({}, [['name', 'score'], ['Ann', 3], [], [], ['Bob', 4]], { origin: 'B5' })
  const { text, output } = await read({ One: sheet })
  expect(text).toBe(
    [
      '| 5 | column 1 | name | score |\n| --- | --- | --- | --- |\n| 6 |  | Ann | 3 |\n| 9 |  | Bob | 4 |',
      '[The first column is the number of the row in the sheet; the next is column A.]',
    ].join('\n\n'),
  )
  expect(output).toMatchObject({ rowNumbers: { heading: 5, rows: [6, 9] }, rows: [['', 'Ann', '3'], expect.anything()] })
  expect((await read({ One: sheet }, { offset: 1 })).output).toMatchObject({ rowNumbers: { heading: 5, rows: [9] } })
  const next = await read({ One: utils.aoa_to_sheet([['n'], [1], [], [2]]) }, { column_offset: 0, output_format: 'text' })
  expect(next.text).toMatch(/^1\tn\n2\t1\n4\t2\n/)
})

test('a duration of more than a day is one, and a time of day is no date', async () => {
  const sheet = utils.aoa_to_sheet([
    ['worked', 'at'],
    [30.25 / 24, 0.25],
  ])
  Object.assign(sheet['A2'] as CellObject, { z: '[h]:mm' })
  Object.assign(sheet['B2'] as CellObject, { z: 'hh:mm' })
  expect((await read({ One: sheet })).output).toMatchObject({ rows: [['30:15', '06:00:00']] })
})

test('comments, links and merged cells are told with their addresses, those of the rows of a page', async () => {
  const sheet = utils.aoa_to_sheet([
    ['title', null],
    ['Ann', 3],
    ['Bob', 4],
  ])
  utils.cell_add_comment(sheet['B2'], 'a remark\non two lines', 'Me')
  utils.cell_set_hyperlink(sheet['A3'], 'https://example.com/?a=1&b=2')
  sheet['!merges'] = [utils.decode_range('A1:B1')]
  const { text } = await read({ One: sheet })
  expect(text).toContain(
    ['Comments:\n- B2 (Me): a remark on two lines', 'Links:\n- A3: https://example.com/?a=1&b=2', 'Merged cells: A1:B1'].join('\n'),
  )
  expect((await read({ One: sheet }, { max_rows: 1 })).text).not.toContain('Links')
  expect((await read({ One: sheet }, { offset: 1 })).output['facts']).toMatchObject({ comments: [], links: [{ cell: 'A3' }], merged: [] })
  expect((await read({ One: sheet }, { include_formatting: false })).output['facts']).toBeNull()
})

test('sheets that are hidden are said to be', async () => {
  const sheet = () => utils.aoa_to_sheet([['a']])
  const workbook = { SheetNames: ['One', 'Two', 'Three'], Sheets: { One: sheet(), Two: sheet(), Three: sheet() } }
  const hidden = { ...workbook, Workbook: { Sheets: [{ Hidden: 0 }, { Hidden: 1 }, { Hidden: 2 }] } } as const
  const bytes = write(hidden as unknown as Parameters<typeof write>[0], { type: 'buffer', bookType: 'xlsx' }) as Buffer
  expect((await readFile(csvServer, bytes, plain)).text).toContain('[Sheet "One" of "One", "Two" (hidden), "Three" (hidden).]')
})

/** A workbook whose cells have styles 0 (none), 1 (yellow) and 2 (a grey of the theme). */
function colored(cells: string): Buffer {
  const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
  const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const type = (name: string, kind: string) =>
    `<Override PartName="/xl/${name}" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.${kind}+xml"/>`
  const link = (id: string, kind: string, target: string) => `<Relationship Id="${id}" Type="${office}/${kind}" Target="${target}"/>`
  const links = (rows: string) =>
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${rows}</Relationships>`
  const fill = (color: string) => `<fill><patternFill patternType="solid"><fgColor ${color}/></patternFill></fill>`
  return buildZip({
    '[Content_Types].xml': `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>${type('workbook.xml', 'sheet.main')}${type('worksheets/sheet1.xml', 'worksheet')}${type('styles.xml', 'styles')}</Types>`,
    '_rels/.rels': links(link('rId1', 'officeDocument', 'xl/workbook.xml')),
    'xl/workbook.xml': `<workbook ${main} xmlns:r="${office}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': links(link('rId1', 'worksheet', 'worksheets/sheet1.xml') + link('rId2', 'styles', 'styles.xml')),
    'xl/styles.xml': `<styleSheet ${main}><fills count="4"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>${fill('rgb="FFFFFF00"')}${fill('theme="0" tint="-0.25"')}</fills><cellXfs count="3"><xf fillId="0"/><xf fillId="2" applyFill="1"/><xf fillId="3" applyFill="1"/></cellXfs></styleSheet>`,
    'xl/worksheets/sheet1.xml': `<worksheet ${main}><sheetData>${cells}</sheetData></worksheet>`,
  })
}

test('colours behind cells are told in ranges, of empty cells too', async () => {
  const row = (number: number, styles: string) =>
    `<row r="${number}">${[...styles].map((style, index) => `<c r="${columnName(index)}${number}" s="${style}">${index === 0 ? '<v>7</v>' : ''}</c>`).join('')}</row>`
  const { output } = await readFile(csvServer, colored([row(1, '0110'), row(2, '0110'), row(3, '1020')].join('')), plain)
  expect(output).toMatchObject({
    facts: {
      fills: [
        { color: 'FFFF00', cells: 'B1:C2, A3' },
        { color: 'BFBFBF', cells: 'C3' },
      ],
    },
  })
})

test('a sheet with more facts than an answer holds says how many are left out', () => {
  const cells = Array.from({ length: 300 }, (): CellObject[] => [{ t: 'n', v: 1, l: { Target: 'https://example.com' } }])
  expect(factsOf({ '!data': cells } as unknown as WorkSheet, { first: 1, last: 250 })).toMatchObject({ omitted: 50 })
})

test('columns are named as in a sheet', () => {
  expect([0, 25, 26, 701, 702, 16_383].map(columnName)).toEqual(['A', 'Z', 'AA', 'ZZ', 'AAA', 'XFD'])
})
