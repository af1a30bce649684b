import { getDocumentProxy } from 'unpdf'
import { expectKind } from '../../documents/file-kind.ts'
import { type PageOfParts, pageOfParts } from '../../documents/page.ts'
import { readWith, Unreadable } from '../../documents/unreadable.ts'
import { formValues } from './form-values.ts'
import { type PdfText, pageToMarkdown } from './page-to-markdown.ts'

export interface PdfOptions {
  /** Name of the file in messages. */
  readonly file: string
  readonly password: string | null
  readonly offset: number
  readonly limit: number
  readonly maxCharacters: number
}

// For damaged files, pdf.js rejects promises that nobody waits for, which would end the process of this module.
process.on('unhandledRejection', () => {})

/** Reads some pages of a PDF as Markdown. */
export default async function parse(bytes: Buffer, options: PdfOptions): Promise<PageOfParts> {
  expectKind(options.file, bytes, ['pdf'])
  return await readWith(options.file, 'PDF', async () => {
    // The reader takes the bytes away from its caller, hence the copy.
    const document = await getDocumentProxy(new Uint8Array(bytes), {
      verbosity: 0,
      ...(options.password !== null && { password: options.password }),
    }).catch((error) => {
      if (error.name !== 'PasswordException') throw error
      throw new Unreadable(
        options.password === null
          ? `${options.file} is protected by a password: pass that as \`password\`, or ask for a copy without one.`
          : `The password does not open ${options.file}; pass the right one as \`password\`.`,
      )
    })
    const unreadable: string[] = []
    const empty: number[] = []
    const part = async (index: number) => {
      try {
        const page = await document.getPage(index + 1)
        const { items } = await page.getTextContent()
        const annotations = await page.getAnnotations().catch(() => {
          unreadable.push(`The form fields of page ${index + 1} could not be read.`)
          return []
        })
        const fields = formValues(annotations)
        const words = pageToMarkdown(items.filter((item) => 'str' in item) as PdfText[])
        const text = [words, fields === '' ? '' : `Form fields:\n${fields}`].filter((piece) => piece !== '').join('\n\n')
        if (text === '') empty.push(index + 1)
        return text
      } catch (error) {
        unreadable.push(`Page ${index + 1} could not be read: ${String((error as Error).message).slice(0, 200)}`)
        return ''
      }
    }
    const page = await pageOfParts(options.file, { unit: 'pages', total: document.numPages, part }, options)
    return { ...page, notices: [...page.notices, ...unreadable, ...describeEmpty(empty)] }
  })
}

function describeEmpty(pages: readonly number[]): string[] {
  if (pages.length === 0) return []
  const names = `${pages.length === 1 ? 'Page' : 'Pages'} ${pages.join(', ')}`
  return [`${names}: no text. A scan has only an image; read that with a tool for images.`]
}
