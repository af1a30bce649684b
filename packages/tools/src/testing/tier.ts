import type { ParserJail, Sandbox } from '@aworld-train/core'
import { inject } from 'vitest'
import { openSandbox } from '../sandbox/open-sandbox.ts'
import { openParserJail } from '../sandbox/parser/open-parser-jail.ts'
import { openSimulatedSandbox } from '../sandbox/simulated/simulated-sandbox.ts'
import { browserFolders } from '../servers/browser/browser-folders.ts'
import { memorySandbox } from './memory-sandbox.ts'
import { parsersHere } from './parsers-here.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Tier in which a suite runs its tools. By default they run in the simulation, with parsers in the process of the test. */
    tier?: 'bubblewrap'
  }
}

/** Whether tools run in jails, with real programs. */
export const isJailed = inject('tier') === 'bubblewrap'
const openJailed = () => openSandbox({ tier: 'bubblewrap', readable: browserFolders() })

export const openTestSandbox: () => Promise<Sandbox> = isJailed ? openJailed : openSimulatedSandbox

/** A sandbox for tools that only read files. */
export const openFileSandbox: () => Promise<Sandbox> = isJailed ? openJailed : async () => memorySandbox()

export const openTestParsers: () => Promise<ParserJail> = isJailed
  ? () => openParserJail({ isolation: 'bubblewrap' })
  : async () => parsersHere
