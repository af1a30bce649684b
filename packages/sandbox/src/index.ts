export type { Sandbox } from '@aworld-train/core'
export { openParserJail, type ParserJailOptions } from './parser/open-parser-jail.ts'
export { openSimulatedSandbox } from './simulated/simulated-sandbox.ts'
