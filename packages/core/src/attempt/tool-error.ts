/** A tool could not do what it was asked. The message is the result that the model reads, and says what to do instead. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}
