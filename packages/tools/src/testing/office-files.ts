import { buildZip } from './build-zip.ts'

const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const word = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="${office}"`
const slides = `xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="${office}"`

/** The relationships of a part: id to type and target. */
function relationships(entries: Readonly<Record<string, readonly [type: string, target: string]>>): string {
  const rows = Object.entries(entries).map(
    ([id, [type, target]]) => `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  )
  return `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${rows.join('')}</Relationships>`
}

function contentTypes(parts: Readonly<Record<string, string>>): string {
  const rows = Object.entries(parts).map(
    ([name, type]) => `<Override PartName="/${name}" ContentType="application/vnd.openxmlformats-officedocument.${type}+xml"/>`,
  )
  return `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="png" ContentType="image/png"/>${rows.join('')}</Types>`
}

/** A paragraph of WordprocessingML, with the style of a heading or a list. */
export const paragraph = (text: string, style = 'Normal') =>
  `<w:p><w:pPr><w:pStyle w:val="${style}"/></w:pPr><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`

/** The files of a Word document around a body, with headings, a header, a footer, a footnote and an image. */
export function docxFiles(body: string): Record<string, string | Buffer> {
  return {
    '[Content_Types].xml': contentTypes({
      'word/document.xml': 'wordprocessingml.document.main',
      'word/styles.xml': 'wordprocessingml.styles',
    }),
    '_rels/.rels': relationships({ rId1: ['officeDocument', 'word/document.xml'] }),
    'word/_rels/document.xml.rels': relationships({
      rId1: ['styles', 'styles.xml'],
      rId2: ['header', 'header1.xml'],
      rId3: ['footnotes', 'footnotes.xml'],
      rId4: ['image', 'media/image1.png'],
    }),
    'word/document.xml': `<w:document ${word} xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><w:body>${body}</w:body></w:document>`,
    'word/styles.xml': `<w:styles ${word}>${['Heading1', 'Heading2'].map((id, level) => `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="heading ${level + 1}"/></w:style>`).join('')}</w:styles>`,
    'word/header1.xml': `<w:hdr ${word}><w:p><w:r><w:t>Confidential &amp; new</w:t></w:r></w:p></w:hdr>`,
    'word/footer1.xml': `<w:ftr ${word}><w:p><w:r><w:t>Page</w:t><w:tab/><w:t>1</w:t></w:r></w:p></w:ftr>`,
    'word/footnotes.xml': `<w:footnotes ${word}><w:footnote w:id="2">${paragraph('A note below.')}</w:footnote></w:footnotes>`,
    'word/media/image1.png': Buffer.from('89504e47', 'hex'),
  }
}

export const docx = (body: string): Buffer => buildZip(docxFiles(body))

export const docxTable = (rows: readonly (readonly string[])[]) =>
  `<w:tbl>${rows.map((row) => `<w:tr>${row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`).join('')}</w:tbl>`

export const docxImage =
  '<w:p><w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" descr="a chart"/><a:graphic><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:blipFill><a:blip r:embed="rId4"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>'

export const footnoteReference = '<w:p><w:r><w:t>See</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'

/** A shape with text. A name with "Title" makes it the slide's title. */
export const shape = (name: string, text: string) =>
  `<p:sp><p:nvSpPr><p:cNvPr id="2" name="${name}"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="900" cy="900"/></a:xfrm><a:prstGeom prst="rect"/></p:spPr><p:txBody><a:bodyPr/><a:p><a:r><a:rPr/><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`

const frame = (uri: string, content: string) =>
  `<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4" name="frame"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9000" cy="9000"/></p:xfrm><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/${uri}">${content}</a:graphicData></a:graphic></p:graphicFrame>`

export const slideTable = (rows: readonly (readonly string[])[]) =>
  frame(
    'table',
    `<a:tbl><a:tblPr/><a:tblGrid>${rows[0]!.map(() => '<a:gridCol w="900"/>').join('')}</a:tblGrid>${rows
      .map(
        (row) =>
          `<a:tr h="900">${row.map((cell) => `<a:tc><a:txBody><a:bodyPr/><a:p><a:r><a:t>${cell}</a:t></a:r></a:p></a:txBody><a:tcPr/></a:tc>`).join('')}</a:tr>`,
      )
      .join('')}</a:tbl>`,
  )

export const slideGroup = (content: string) =>
  `<p:grpSp><p:nvGrpSpPr><p:cNvPr id="9" name="group"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="90" cy="90"/><a:chOff x="0" y="0"/><a:chExt cx="90" cy="90"/></a:xfrm></p:grpSpPr>${content}</p:grpSp>`

/** A frame that puts the chart of `pptxFiles` on a slide. */
export const slideChart = frame('chart', '<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" r:id="rId3"/>')

const points = (values: readonly string[]) => values.map((value, index) => `<c:pt idx="${index}"><c:v>${value}</c:v></c:pt>`).join('')

const chart = `<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:chart><c:plotArea><c:barChart><c:barDir val="col"/><c:grouping val="clustered"/><c:ser><c:tx><c:strRef><c:strCache>${points(['Q1'])}</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>${points(['East', 'West'])}</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache>${points(['19.2', '21.4'])}</c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>`

/** The files of a presentation. Slides are shown in the order of this list and stored in the reverse order. */
export function pptxFiles(contents: readonly { readonly shapes: string; readonly note?: string }[]): Record<string, string | Buffer> {
  const number = (index: number) => contents.length - index
  const tree = (content: string) =>
    `<p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>${content}</p:spTree></p:cSld>`
  const files: Record<string, string | Buffer> = {
    '[Content_Types].xml': contentTypes({
      'ppt/presentation.xml': 'presentationml.presentation.main',
      'ppt/slideLayouts/slideLayout1.xml': 'presentationml.slideLayout',
      ...Object.fromEntries(contents.map((_, index) => [`ppt/slides/slide${number(index)}.xml`, 'presentationml.slide'])),
    }),
    '_rels/.rels': relationships({ rId1: ['officeDocument', 'ppt/presentation.xml'] }),
    'ppt/presentation.xml': `<p:presentation ${slides}><p:sldIdLst>${contents.map((_, index) => `<p:sldId id="${256 + index}" r:id="rId${index + 10}"/>`).join('')}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relationships({
      rId1: ['theme', 'theme/theme1.xml'],
      ...Object.fromEntries(contents.map((_, index) => [`rId${index + 10}`, ['slide', `slides/slide${number(index)}.xml`] as const])),
    }),
    'ppt/theme/theme1.xml': `<a:theme ${slides}><a:themeElements><a:clrScheme name="x"/><a:fontScheme name="x"/></a:themeElements></a:theme>`,
    'ppt/slideLayouts/slideLayout1.xml': `<p:sldLayout ${slides}>${tree('')}</p:sldLayout>`,
    'ppt/slideLayouts/_rels/slideLayout1.xml.rels': relationships({ rId1: ['slideMaster', '../slideMasters/slideMaster1.xml'] }),
    'ppt/slideMasters/slideMaster1.xml': `<p:sldMaster ${slides}>${tree('')}<p:txStyles/></p:sldMaster>`,
    'ppt/slideMasters/_rels/slideMaster1.xml.rels': relationships({ rId1: ['theme', '../theme/theme1.xml'] }),
    'ppt/charts/chart1.xml': chart,
    'ppt/media/image1.png': Buffer.from('89504e47', 'hex'),
  }
  for (const [index, { shapes, note }] of contents.entries()) {
    const id = number(index)
    files[`ppt/slides/slide${id}.xml`] = `<p:sld ${slides}>${tree(shapes)}</p:sld>`
    files[`ppt/slides/_rels/slide${id}.xml.rels`] = relationships({
      rId1: ['slideLayout', '../slideLayouts/slideLayout1.xml'],
      rId3: ['chart', '../charts/chart1.xml'],
      ...(note === undefined ? {} : { rId2: ['notesSlide', `../notesSlides/notesSlide${id}.xml`] as const }),
    })
    if (note === undefined) continue
    const body = shape('Notes', note).replace('<p:nvPr/>', '<p:nvPr><p:ph type="body"/></p:nvPr>')
    files[`ppt/notesSlides/notesSlide${id}.xml`] = `<p:notes ${slides}>${tree(body)}</p:notes>`
  }
  return files
}

export const pptx = (contents: Parameters<typeof pptxFiles>[0]): Buffer => buildZip(pptxFiles(contents))

/** A workbook of one sheet with this content. */
export function workbook(sheet: string): Buffer {
  const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
  return buildZip({
    '[Content_Types].xml': contentTypes({
      'xl/workbook.xml': 'spreadsheetml.sheet.main',
      'xl/worksheets/sheet1.xml': 'spreadsheetml.worksheet',
    }),
    '_rels/.rels': relationships({ rId1: ['officeDocument', 'xl/workbook.xml'] }),
    'xl/workbook.xml': `<workbook ${main} xmlns:r="${office}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relationships({ rId1: ['worksheet', 'worksheets/sheet1.xml'] }),
    'xl/worksheets/sheet1.xml': `<worksheet ${main}>${sheet}</worksheet>`,
  })
}
