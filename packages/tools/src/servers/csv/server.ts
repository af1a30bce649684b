import { z } from 'zod'
import { filePath, listSupportedFormats, offsetOf, placeFields, readOfficeDocument, toAnswer } from '../../documents/document-tool.ts'
import { toTabbed, toTable } from '../../documents/markdown.ts'
import { defineTool, outputFormat, type ToolServer } from '../../tool-server.ts'

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
})
type Output = z.output<typeof output>

const extractCsvContent = defineTool({
  name: 'extract_csv_content',
  description:
    'Reads a table: CSV, TSV or another delimited text, or a sheet of a workbook (.xlsx, and by LibreOffice .xls and .ods). The first row names the columns. ' +
    'Rows and columns come in pages; statistics are over all rows. Formulas show the value that was saved.',
  input: z.object({
    file_path: filePath,
    output_format: outputFormat,
    max_rows: z.int().min(1).max(10_000).default(1_000).describe('At most this many rows; a page also ends at 40,000 characters.'),
    include_statistics: z.boolean().default(true).describe('Adds counts, mean, quartiles or the most frequent value of each column.'),
    generate_visualizations: z.boolean().default(false).describe('Adds a histogram of each column of numbers, drawn as text.'),
    encoding: z.string().min(1).max(40).nullish().describe('Such as "utf-8" or "windows-1252"; detected where absent.'),
    delimiter: z.string().min(1).max(5).nullish().describe('What separates cells, such as ";"; detected where absent.'),
    sheet: z.string().min(1).max(255).nullish().describe('Name of the sheet of a workbook; the first where absent.'),
    offset: offsetOf('rows'),
    column_offset: offsetOf('columns'),
  }),
  output,
  async call(input, context) {
    const options = {
      offset: input.offset,
      maxRows: input.max_rows,
      columnOffset: input.column_offset,
      includeStatistics: input.include_statistics,
      histograms: input.generate_visualizations,
      encoding: input.encoding ?? null,
      delimiter: input.delimiter ?? null,
      sheet: input.sheet ?? null,
    }
    const document = await readOfficeDocument(input.file_path, 'xlsx', import.meta.url, options, context)
    return output.parse({ ...document, format: input.output_format })
  },
  toText(answer) {
    const notices = [...answer.notices]
    if (answer.sheets.length > 1) notices.push(`Sheet "${answer.sheet}" of ${answer.sheets.map((name) => `"${name}"`).join(', ')}.`)
    if (answer.totalColumns > answer.columns.length) notices.push(columnPlace(answer))
    return toAnswer({ ...answer, notices }, 'Rows', [table(answer), describeStatistics(answer)].filter((part) => part !== '').join('\n\n'))
  },
})

function columnPlace({ columnOffset, columns, totalColumns, nextColumnOffset }: Output): string {
  const place = `Columns ${columnOffset + 1} to ${columnOffset + columns.length} of ${totalColumns}`
  return nextColumnOffset === null ? `${place}.` : `${place}; continue with column_offset ${nextColumnOffset}.`
}

function table({ format, columns, rows }: Output): string {
  return (format === 'markdown' ? toTable : toTabbed)([columns, ...rows])
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
