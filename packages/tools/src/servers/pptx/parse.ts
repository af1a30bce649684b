import { type Chart, type CommonChart, type Element, parse as parsePptx, type ScatterChart, type Slide } from 'pptxtojson/dist/index.js'
import { type Archive, openArchive, toStoredArchive } from '../../documents/archive.ts'
import { withoutPassword } from '../../documents/decrypt-office.ts'
import { expectKind } from '../../documents/file-kind.ts'
import { htmlToMarkdown, toTabbed, toTable } from '../../documents/markdown.ts'
import { type PageOfParts, pageOfParts } from '../../documents/page.ts'
import { readWith } from '../../documents/unreadable.ts'
import { attribute, tags } from '../../documents/xml-tags.ts'

export interface PptxOptions {
  /** Name of the file in messages. */
  readonly file: string
  readonly password: string | null
  readonly plain: boolean
  readonly images: boolean
  readonly notes: boolean
  readonly outline: boolean
  readonly offset: number
  readonly limit: number
  readonly maxCharacters: number
}

export interface PptxDocument extends PageOfParts {
  /** Titles of all slides, in their order. */
  readonly outline: readonly string[]
  readonly images: readonly { readonly name: string; readonly bytes: number }[]
}

/** Most titles and images that an answer names. */
const maxNames = 500

/** Reads some slides of a presentation as Markdown. */
export default async function parse(source: Buffer, options: PptxOptions): Promise<PptxDocument> {
  const bytes = await withoutPassword(options.file, source, options.password)
  expectKind(options.file, bytes, ['pptx'])
  const archive = openArchive(options.file, bytes)
  const slides = await readWith(options.file, 'PPTX', async () => inOrder(archive, await readSlides(archive)))
  const part = (index: number) => slideText(slides[index]!, index, options)
  const page = await readWith(options.file, 'PPTX', () =>
    pageOfParts(options.file, { unit: 'slides', total: slides.length, part }, options),
  )
  return {
    ...page,
    outline: options.outline ? slides.slice(0, maxNames).map(({ slide }) => titleOf(slide).slice(0, 200)) : [],
    images: options.images ? archive.media.filter(({ name }) => name.startsWith('ppt/media/')).slice(0, maxNames) : [],
  }
}

async function readSlides({ parts }: Archive): Promise<readonly Slide[]> {
  const stored = toStoredArchive(parts)
  const file = new ArrayBuffer(stored.length)
  stored.copy(new Uint8Array(file))
  return (await parsePptx(file, { imageMode: 'none', videoMode: 'none', audioMode: 'none' })).slides
}

interface PlacedSlide {
  readonly slide: Slide
  /** Whether it is left out when the presentation is shown. */
  readonly isHidden: boolean
}

/** Puts slides in the order in which the presentation shows them. The reader sorts them by the numbers of their files. */
function inOrder({ parts }: Archive, slides: readonly Slide[]): readonly PlacedSlide[] {
  const text = (name: string) => parts.get(name)?.toString() ?? ''
  const slideType = 'application/vnd.openxmlformats-officedocument.presentationml.slide+xml'
  const files = tags(text('[Content_Types].xml'), 'Override')
    .filter((tag) => tag.includes(`"${slideType}"`))
    .map((tag) => attribute(tag, 'PartName').replace(/^\//, ''))
    .toSorted((a, b) => fileNumber(a) - fileNumber(b))
  const targets = new Map(
    tags(text('ppt/_rels/presentation.xml.rels'), 'Relationship').map((tag) => [attribute(tag, 'Id'), attribute(tag, 'Target')]),
  )
  const shown = tags(text('ppt/presentation.xml'), 'p:sldId').flatMap((tag) => {
    const target = targets.get(attribute(tag, 'r:id'))
    const index = target === undefined ? -1 : files.indexOf(target.startsWith('/') ? target.slice(1) : `ppt/${target}`)
    return slides[index] === undefined ? [] : placed(index)
  })
  return shown.length === 0 ? slides.map((_, index) => placed(index)) : shown

  function placed(index: number): PlacedSlide {
    const [tag = ''] = tags(text(files[index] ?? ''), 'p:sld')
    return { slide: slides[index]!, isHidden: /^(0|false)$/.test(attribute(tag, 'show')) }
  }
}

function fileNumber(name: string): number {
  return Number(/(\d+)\.xml/.exec(name)?.[1] ?? 0)
}

function slideText({ slide, isHidden }: PlacedSlide, index: number, { plain, images, notes }: PptxOptions): string {
  const title = titleElement(slide)
  const heading = `${plain ? '' : '# '}Slide ${index + 1}${isHidden ? ' (hidden)' : ''}${title === undefined ? '' : `: ${titleOf(slide)}`}`
  const body = slide.elements.filter((element) => element !== title).map((element) => elementText(element, plain, images))
  const note = notes ? htmlToMarkdown(slide.note ?? '', { plain: true }) : ''
  return [heading, ...body, note === '' ? '' : `Notes: ${note}`].filter((part) => part !== '').join('\n\n')
}

function titleElement({ elements }: Slide): Element | undefined {
  return elements.find((element) => element.type === 'text' && /title/i.test(element.name) && htmlToMarkdown(element.content) !== '')
}

function titleOf(slide: Slide): string {
  const title = titleElement(slide)
  return title?.type === 'text' ? htmlToMarkdown(title.content, { plain: true }).replace(/\s+/g, ' ') : ''
}

function elementText(element: Element, plain: boolean, images: boolean): string {
  const nested = (elements: readonly Element[]) =>
    elements
      .map((one) => elementText(one, plain, images))
      .filter((part) => part !== '')
      .join('\n\n')
  const table = plain ? toTabbed : toTable
  switch (element.type) {
    case 'text':
    case 'shape':
      return htmlToMarkdown(element.content ?? '', { plain })
    case 'group':
      return nested(element.elements)
    case 'table':
      return table(element.data.map((row) => row.map((cell) => htmlToMarkdown(cell.text ?? '', { plain }))))
    case 'chart':
      return `Chart (${element.chartType}):\n${table(chartRows(element))}`
    case 'diagram':
      return element.textList?.length > 0 ? element.textList.map((text) => `- ${text}`).join('\n') : nested(element.elements)
    case 'math':
      return `$${element.latex}$`
    case 'image':
      return images ? `![image](${element.ref})` : ''
    default:
      return `[${element.type}]`
  }
}

/** A chart's numbers: a column for each series, a row for each label. */
function chartRows(chart: Chart): string[][] {
  return isScatter(chart) ? scatterRows(chart) : seriesRows(chart)
}

function isScatter(chart: Chart): chart is ScatterChart {
  return chart.chartType === 'scatterChart' || chart.chartType === 'bubbleChart'
}

function scatterRows({ data: [xs = [], ...series] }: ScatterChart): string[][] {
  const heading = ['x', ...series.map((_, index) => `y${series.length === 1 ? '' : index + 1}`)]
  return [heading, ...xs.map((x, row) => [String(x), ...series.map((ys) => String(ys[row] ?? ''))])]
}

function seriesRows({ data }: CommonChart): string[][] {
  const [first] = data
  const columns = data.map(({ values }) => new Map(values.map(({ x, y }) => [x, String(y)])))
  const rows = first?.values.map(({ x }) => [first.xlabels[x as never] ?? x, ...columns.map((column) => column.get(x) ?? '')])
  return [['', ...data.map(({ key }) => String(key))], ...((rows as string[][] | undefined) ?? [])]
}
