/** The error of a tool that could not do its task. The message is the result that the model reads, and names an alternative. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}
