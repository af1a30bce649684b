import { type ParserJail, ToolError } from '@aworld-train/core'

/** Calls parsers in this process, which is faster than a jail but isolates nothing. */
export const parsersHere: ParserJail = {
  notices: [],
  async parse(module, bytes, options) {
    const { default: parse } = await import(module.href)
    try {
      return JSON.parse(JSON.stringify(await parse(Buffer.from(bytes), options)))
    } catch (error) {
      throw new ToolError((error as Error).message)
    }
  },
  close: async () => {},
}
