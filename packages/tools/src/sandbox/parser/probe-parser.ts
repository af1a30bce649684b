/** The parser that shows whether parsers can run. */
export default function parse(): string {
  return 'runs'
}
