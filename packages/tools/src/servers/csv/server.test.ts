import { utils, write } from '@e965/xlsx'
import { expect, test } from 'vitest'
import { buildZip } from '../../testing/build-zip.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { workbook } from '../../testing/office-files.ts'
import { openFileContext, readFile } from '../../testing/read-file.ts'
import { csvServer } from './server.ts'

const read = (bytes: Uint8Array | string, settings = {}, path?: string) => readFile(csvServer, bytes, settings, path)
const plain = { include_statistics: false }

describeToolServer({
  server: csvServer,
  examples: { extract_csv_content: { file_path: 'file' }, list_supported_formats: {} },
  open: (overrides) => openFileContext({ file: 'a,b\n1,2\n' }, overrides),
})

test('a table becomes Markdown with statistics of its columns', async () => {
  const { text } = await read('city,people\nUlm,126000\n"Bonn, on Rhine",336000\nUlm,\n')
  expect(text).toBe(
    [
      '| city | people |\n| --- | --- |\n| Ulm | 126000 |\n| Bonn, on Rhine | 336000 |\n| Ulm |  |',
      'Statistics:\n- city: 3 filled, 0 empty; 2 different, most often "Ulm" (2 of 3)\n- people: 2 filled, 1 empty; mean 231000, standard deviation 148492.424049, minimum 126000, quartiles 178500, 231000, 283500, maximum 336000',
    ].join('\n\n'),
  )
})

test.each([
  ['a;b\n1,5;2\n3,5;4', ';'],
  ['a\tb\n1\t2', '\t'],
  ['a|b|c\n1|2|3', '|'],
  ['only\none\ncolumn', ','],
])('the delimiter of %j is detected', async (text, delimiter) => {
  expect((await read(text, plain)).output).toMatchObject({ delimiter })
})

test('encoding and delimiter can be named', async () => {
  expect((await read(Buffer.from('n\xe4me#x\n\xfc#1', 'latin1'), { ...plain, encoding: 'latin-1', delimiter: '#' })).output).toMatchObject({
    columns: ['näme', 'x'],
    rows: [['ü', '1']],
  })
  expect((await read(Buffer.from('\ufeffa,b\n1,2', 'utf16le'), plain)).output).toMatchObject({ encoding: 'utf-16le', rows: [['1', '2']] })
})

test('rows come in pages, and statistics are over all of them', async () => {
  const text = `n\n${Array.from({ length: 25 }, (_, index) => index).join('\n')}`
  const page = await read(text, { max_rows: 10, offset: 10 })
  expect(page.output).toMatchObject({ offset: 10, total: 25, nextOffset: 20, rows: expect.arrayContaining([['10'], ['19']]) })
  expect(page.text).toContain('[Rows 11 to 20 of 25; continue with offset 20.]')
  expect(page.text).toContain('Statistics of all 25 rows:\n- n: 25 filled, 0 empty; mean 12,')
  await expect(read(text, { offset: 25 })).rejects.toThrow('Offset 25 is behind the end of "file", which has 25 rows.')
})

test('131,072 columns come in pages of columns', async () => {
  const wide = `${Array.from({ length: 131_072 }, (_, index) => `c${index}`).join(',')}\n${'1,'.repeat(131_071)}2`
  const { text, output } = await read(wide, { column_offset: 131_000 })
  expect(output).toMatchObject({ totalColumns: 131_072, nextColumnOffset: null, rows: [[...Array(71).fill('1'), '2']] })
  expect(text).toContain('[Columns 131001 to 131072 of 131072.]')
  expect((await read(wide, plain)).text).toContain('[Columns 1 to 100 of 131072; continue with column_offset 100.]')
})

test('a page ends before it is too long, and a long cell is cut', async () => {
  const text = `n\n${Array.from({ length: 100 }, () => 'x'.repeat(5_000)).join('\n')}`
  const page = await read(text, plain)
  expect(page.text.length).toBeLessThan(45_000)
  expect(page.text).toContain('… (3000 more characters)')
  expect(page.output['nextOffset']).toBeGreaterThan(0)
})

test('histograms are drawn as text on demand', async () => {
  const { text } = await read('n\n1\n1\n1\n11', { generate_visualizations: true, include_statistics: false })
  expect(text).toContain(`  1 to 2: ${'#'.repeat(40)} 3\n`)
  expect(text).toContain('  10 to 11: ############## 1')
})

test('ragged rows, empty lines, loose quotes and a quote that never ends are read', async () => {
  expect((await read('a,b\n1\n\n1,2,3\nx "y" z,2', plain)).output).toMatchObject({
    columns: ['a', 'b', 'column 3'],
    rows: [['1'], ['1', '2', '3'], ['x "y" z', '2']],
  })
  const unclosed = await read('a,b\n1,"open\n2,3', plain)
  expect(unclosed.output).toMatchObject({
    rows: [
      ['1', '"open'],
      ['2', '3'],
    ],
  })
  expect(unclosed.text).toContain('[A quotation mark is never closed')
})

test('a header alone, and NUL bytes, are a table too', async () => {
  expect((await read('a,b\n')).text).toBe('| a | b |\n| --- | --- |\n\n[There are no rows.]')
  expect((await read('a,b\n1,\0\n', plain)).output).toMatchObject({ rows: [['1', '\ufffd']] })
})

test('a workbook is read sheet by sheet, formulas with the value that was saved, or as they are', async () => {
  const one = utils.aoa_to_sheet(
    [
      ['name', 'score', 'day'],
      ['Ann', 3.5, new Date(Date.UTC(2024, 1, 29))],
      ['Bob', null, null],
    ],
    { UTC: true },
  )
  one['B3'] = { t: 'n', f: 'SUM(B2:B2)', v: 3.5 }
  one['D2'] = { t: 'e', v: 0x07, w: '#DIV/0!' }
  one['!ref'] = 'A1:D3'
  one['C3'] = { t: 'z', f: 'B2*2' }
  const two = utils.aoa_to_sheet([['x'], [1]])
  const bytes = write(
    { SheetNames: ['One', 'Two'], Sheets: { One: one, Two: two } },
    { type: 'buffer', bookType: 'xlsx', compression: true },
  )
  const first = await read(bytes, plain)
  expect(first.output).toMatchObject({
    columns: ['name', 'score', 'day', 'column 4'],
    rows: [
      ['Ann', '3.5', '2024-02-29', '#DIV/0!'],
      ['Bob', '3.5', '=B2*2'],
    ],
  })
  expect(first.text).toContain('[Sheet "One" of "One", "Two".]')
  expect((await read(bytes, { ...plain, sheet: 'Two' })).output).toMatchObject({ columns: ['x'], rows: [['1']] })
  await expect(read(bytes, { sheet: 'Three' })).rejects.toThrow('has no sheet "Three"; it has "One", "Two".')
})

test('cells without a value, times of day and shares are read', async () => {
  const cells = '<row r="1"><c r="A1"/><c r="B1" t="str"><v>b</v></c><c r="C1" s="1"/></row><row r="2"><c r="A2"/></row>'
  const times = '<row r="3"><c r="A3" t="d"><v>2024-05-06T07:08:09Z</v></c><c r="B3"><v>0.25</v></c></row>'
  expect((await read(workbook(`<sheetData>${cells}${times}</sheetData>`), plain)).output).toMatchObject({
    columns: ['column 1', 'b'],
    rows: [['2024-05-06 07:08:09', '0.25']],
  })
  const sheet = utils.aoa_to_sheet([['time'], [0.5208333333333334]])
  sheet['A2'].z = 'hh:mm'
  const bytes = write({ SheetNames: ['One'], Sheets: { One: sheet } }, { type: 'buffer', bookType: 'xlsx' })
  expect((await read(bytes, plain)).output).toMatchObject({ rows: [['12:30:00']] })
})

test('characters beyond 16 bits are read, however a workbook writes them', async () => {
  const cell = (name: string, text: string) => `<c r="${name}" t="inlineStr"><is><t>${text}</t></is></c>`
  const written = ['ok &#128512; &#x1F600; 😀', '&#134071;野家 &amp; &#60;', '&#55357;&#56832; &#xFFFFFFF;']
  const bytes = workbook(`<sheetData><row r="1">${written.map((text, index) => cell(`${'ABC'[index]}1`, text)).join('')}</row></sheetData>`)
  expect((await read(bytes, plain)).output).toMatchObject({ columns: ['ok 😀 😀 😀', '𠮷野家 & <', '😀 \ufffd'] })
})

test('a sheet that claims all cells of Excel costs only the cells that it has', async () => {
  const bytes = workbook(
    '<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData>',
  )
  expect((await read(bytes, plain)).output).toMatchObject({ total: 1, totalColumns: 16_384 })
})

test('what is no table is named for what it is', async () => {
  await expect(read('')).rejects.toThrow('is empty')
  await expect(read('%PDF-1.7', {}, 'a.csv')).rejects.toThrow('"a.csv" is a PDF: read it with convert_document_to_markdown.')
  await expect(read(buildZip({ 'a.xml': '<a/>' }), {}, 'a.xlsx')).rejects.toThrow('is a ZIP archive that is no Office file')
  await expect(read(buildZip({ 'xl/workbook.xml': Buffer.alloc(2 ** 24) }))).rejects.toThrow('100 times its size')
})
