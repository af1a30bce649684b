/** Most characters of a value. */
const maxCharacters = 2_000

/** A field of a form as pdf.js returns it, among other annotations of a page. */
interface Widget {
  readonly subtype?: unknown
  readonly fieldName?: unknown
  /** The name that a person is shown. */
  readonly alternativeText?: unknown
  readonly fieldValue?: unknown
  /** Value of a radio button when it is the chosen one. */
  readonly buttonValue?: unknown
  readonly radioButton?: unknown
  readonly checkBox?: unknown
}

/** What the fields of a page's form hold, a line for each that is filled. */
export function formValues(annotations: readonly Widget[]): string {
  return annotations
    .filter(({ subtype }) => subtype === 'Widget')
    .flatMap((widget) => {
      const value = fieldText(widget)
      const name = [widget.alternativeText, widget.fieldName].find((text) => typeof text === 'string' && text !== '') ?? 'field'
      return value === '' ? [] : [`- ${oneLine(String(name))}: ${oneLine(value)}`]
    })
    .join('\n')
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, maxCharacters)

/** The value of a field; empty if it has none, is not checked or is not the chosen one. */
function fieldText({ fieldValue, buttonValue, radioButton, checkBox }: Widget): string {
  if (fieldValue === null || fieldValue === undefined) return ''
  if (radioButton === true) return fieldValue === buttonValue ? String(fieldValue) : ''
  if (checkBox === true) return fieldValue === 'Off' ? '' : 'checked'
  return Array.isArray(fieldValue) ? fieldValue.join(', ') : String(fieldValue)
}
