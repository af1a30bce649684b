/** One call of a parser among many. */
export interface ParserCall {
  readonly module: string
  readonly length: number
  readonly options: unknown
}

/** A parser that calls others, so that a process of the jail is started for many documents and not for each. */
export default async function parse(bytes: Buffer, calls: readonly ParserCall[]): Promise<({ value: unknown } | { error: string })[]> {
  const answers: ({ value: unknown } | { error: string })[] = []
  let at = 0
  for (const { module, length, options } of calls) {
    const { default: parser } = await import(module)
    try {
      answers.push({ value: await parser(bytes.subarray(at, at + length), options) })
    } catch (error) {
      answers.push({ error: (error as Error).message })
    }
    at += length
  }
  return answers
}
