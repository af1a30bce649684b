import { z } from 'zod'
import {
  filePath,
  listSupportedFormats,
  offsetOf,
  password,
  placeFields,
  readOfficeDocument,
  toAnswer,
} from '../../documents/document-tool.ts'
import { toTabbed, toTable } from '../../documents/markdown.ts'
import { defineTool, outputFormat, type ToolServer } from '../../tool-server.ts'
import { columnName } from './sheet-facts.ts'

const statistics = z.object({
  column: z.string(),
  filled: z.int(),
  empty: z.int(),
  numbers: z
    .object({
      mean: z.number(),
      standardDeviation: z.number().nullable(),
      minimum: z.number(),
      quartile1: z.number(),
      median: z.number(),
      quartile3: z.number(),
      maximum: z.number(),
      histogram: z.array(z.object({ from: z.number(), to: z.number(), rows: z.int() })),
    })
    .nullable(),
  texts: z.object({ distinct: z.int(), mostFrequent: z.string(), occurrences: z.int() }).nullable(),
})

const output = z.object({
  ...placeFields,
  columns: z.array(z.string()),
  columnOffset: z.int(),
  totalColumns: z.int(),
  nextColumnOffset: z.int().nullable(),
  rows: z.array(z.array(z.string())),
  statistics: z.array(statistics),
  encoding: z.string().nullable(),
  delimiter: z.string().nullable(),
  sheet: z.string().nullable(),
  sheets: z.array(z.string()),
  hiddenSheets: z.array(z.string()),
  rowNumbers: z.object({ heading: z.int(), rows: z.array(z.int()) }).nullable(),
  facts: z
    .object({
      comments: z.array(z.object({ cell: z.string(), author: z.string(), text: z.string() })),
      links: z.array(z.object({ cell: z.string(), target: z.string() })),
      fills: z.array(z.object({ color: z.string(), cells: z.string() })),
      merged: z.array(z.string()),
      omitted: z.int(),
    })
    .nullable(),
})
type Output = z.output<typeof output>

const extractCsvContent = defineTool({
  name: 'extract_csv_content',
  description:
    'Reads a table: CSV, TSV or another delimited text, or a sheet of a workbook (.xlsx, and by LibreOffice .xls and .ods). The first row names the columns. ' +
    'Rows and columns come in pages; statistics are over all rows. Formulas show the value that was saved.',
  input: z.object({
    file_path: filePath,
    password,
    output_format: outputFormat,
    max_rows: z.int().min(1).max(10_000).default(1_000).describe('At most this many rows; a page also ends at 40,000 characters.'),
    include_statistics: z.boolean().default(true).describe('Adds counts, mean, quartiles or the most frequent value of each column.'),
    generate_visualizations: z.boolean().default(false).describe('Adds a histogram of each column of numbers, drawn as text.'),
    encoding: z.string().min(1).max(40).nullish().describe('Such as "utf-8" or "windows-1252"; detected where absent.'),
    delimiter: z.string().min(1).max(5).nullish().describe('What separates cells, such as ";"; detected where absent.'),
    include_formatting: z
      .boolean()
      .default(true)
      .describe(
        'Adds what a workbook has beside its values: comments, links, colours behind cells and merged ranges, with their addresses.',
      ),
    sheet: z.string().min(1).max(255).nullish().describe('Name of the sheet of a workbook; the first where absent.'),
    offset: offsetOf('rows'),
    column_offset: offsetOf('columns'),
  }),
  output,
  async call(input, context) {
    const options = {
      password: input.password ?? null,
      offset: input.offset,
      maxRows: input.max_rows,
      columnOffset: input.column_offset,
      includeStatistics: input.include_statistics,
      histograms: input.generate_visualizations,
      encoding: input.encoding ?? null,
      delimiter: input.delimiter ?? null,
      sheet: input.sheet ?? null,
      facts: input.include_formatting,
    }
    const document = await readOfficeDocument(input.file_path, 'xlsx', import.meta.url, options, context)
    return output.parse({ ...document, format: input.output_format })
  },
  toText(answer) {
    const notices = [...answer.notices]
    if (answer.sheets.length > 1)
      notices.push(`Sheet "${answer.sheet}" of ${answer.sheets.map((name) => sheetName(name, answer)).join(', ')}.`)
    if (hasRowNumbers(answer))
      notices.push(`The first column is the number of the row in the sheet; the next is column ${columnName(answer.columnOffset)}.`)
    if (answer.totalColumns > answer.columns.length) notices.push(columnPlace(answer))
    return toAnswer(
      { ...answer, notices },
      'Rows',
      [table(answer), describeFacts(answer), describeStatistics(answer)].filter((part) => part !== '').join('\n\n'),
    )
  },
})

function columnPlace({ columnOffset, columns, totalColumns, nextColumnOffset }: Output): string {
  const place = `Columns ${columnOffset + 1} to ${columnOffset + columns.length} of ${totalColumns}`
  return nextColumnOffset === null ? `${place}.` : `${place}; continue with column_offset ${nextColumnOffset}.`
}

const sheetName = (name: string, { hiddenSheets }: Output) => `"${name}"${hiddenSheets.includes(name) ? ' (hidden)' : ''}`

/** Whether rows are shown with their numbers, because some are blank or something is said about their cells. */
function hasRowNumbers({ rowNumbers, offset, facts }: Output): boolean {
  if (rowNumbers === null) return false
  const isWhole = rowNumbers.heading === 1 && rowNumbers.rows.every((number, index) => number === offset + index + 2)
  return !isWhole || (facts !== null && describedFacts(facts).length > 0)
}

function table(answer: Output): string {
  const { format, columns, rows, rowNumbers } = answer
  const numbers = hasRowNumbers(answer) ? [rowNumbers!.heading, ...rowNumbers!.rows] : null
  const lines = [columns, ...rows].map((row, index) => (numbers === null ? row : [String(numbers[index]), ...row]))
  return (format === 'markdown' ? toTable : toTabbed)(lines)
}

const describeFacts = ({ facts }: Output) => (facts === null ? '' : describedFacts(facts).join('\n'))

function describedFacts({ comments, links, fills, merged, omitted }: NonNullable<Output['facts']>): string[] {
  const list = (heading: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [`${heading}:\n${lines.map((line) => `- ${line}`).join('\n')}`]
  return [
    ...list(
      'Comments',
      comments.map(({ cell, author, text }) => `${cell}${author && ` (${author})`}: ${text.replace(/\s+/g, ' ').trim()}`),
    ),
    ...list(
      'Links',
      links.map(({ cell, target }) => `${cell}: ${target}`),
    ),
    ...list(
      'Colours behind cells',
      fills.map(({ color, cells }) => `${color}: ${cells}`),
    ),
    ...(merged.length === 0 ? [] : [`Merged cells: ${merged.join(', ')}`]),
    ...(omitted === 0 ? [] : [`${omitted} more comments, links and ranges of cells are left out; ask for fewer rows.`]),
  ]
}

function describeStatistics({ statistics, nextOffset, offset, total }: Output): string {
  if (statistics.length === 0) return ''
  const heading = nextOffset === null && offset === 0 ? 'Statistics:' : `Statistics of all ${total} rows:`
  return [heading, ...statistics.map(describeColumn)].join('\n')
}

function describeColumn({ column, filled, empty, numbers, texts }: Output['statistics'][number]): string {
  const name = `- ${column.replace(/\s+/g, ' ').slice(0, 100)}: ${filled} filled, ${empty} empty`
  if (texts !== null) return `${name}; ${texts.distinct} different, most often "${texts.mostFrequent}" (${texts.occurrences} of ${filled})`
  if (numbers === null) return name
  const { mean, standardDeviation, minimum, quartile1, median, quartile3, maximum } = numbers
  const facts = `${name}; mean ${mean}, standard deviation ${standardDeviation ?? 'none'}, minimum ${minimum}, quartiles ${quartile1}, ${median}, ${quartile3}, maximum ${maximum}`
  const most = Math.max(...numbers.histogram.map(({ rows }) => rows))
  const bars = numbers.histogram.map(({ from, to, rows }) => `  ${from} to ${to}: ${'#'.repeat(Math.ceil((rows / most) * 40))} ${rows}`)
  return [facts, ...bars].join('\n')
}

export const csvServer: ToolServer = {
  name: 'documents-csv-server',
  scope: 'files',
  description: 'Reads tables: CSV, TSV and Excel workbooks, with statistics.',
  needs: [],
  tools: [
    extractCsvContent,
    listSupportedFormats({
      '.csv': 'cells separated by commas, semicolons, bars or what `delimiter` says',
      '.tsv': 'cells separated by tabs',
      '.xlsx': 'Excel workbooks, one sheet at a time; .xlsm too',
      '.xls': 'Excel workbooks of 97 to 2003, by LibreOffice',
      '.ods': 'OpenDocument spreadsheets, by LibreOffice',
    }),
  ],
}
