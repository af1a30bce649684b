/** The error for a document that cannot be read as asked. Its message is a whole sentence for the model, with a remedy. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

/** Calls a foreign reader. Its error for a damaged file becomes a sentence that names the file. */
export async function readWith<Value>(file: string, format: string, reader: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await reader()
  } catch (error) {
    if (error instanceof Unreadable) throw error
    const reason = describeReason(error)
    throw new Unreadable(
      `${file} could not be read as ${format}: ${reason}. It is damaged; try another copy, or look at its bytes in the terminal.`,
    )
  }
}

function describeReason(error: unknown): string {
  if (error instanceof RangeError) return 'its parts are nested too deeply or are too large'
  if (error instanceof TypeError) return 'a part is missing or is not as the format wants it'
  const message = error instanceof Error ? error.message : String(error)
  return (
    message
      .replace(/^.*\[xmldom \w+\]\s*/, '')
      .split('\n', 1)[0]!
      .trim()
      .replace(/\.$/, '')
      .slice(0, 200) || 'its structure is not valid'
  )
}
