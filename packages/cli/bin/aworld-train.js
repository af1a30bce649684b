#!/usr/bin/env node
// In a checkout the launcher installs what is stale, finds a Node that is new enough and runs the sources; elsewhere they come compiled.
import { existsSync } from 'node:fs'

const launcher = new URL('../../../scripts/launch.mjs', import.meta.url)
if (existsSync(launcher)) {
  process.argv.splice(2, 0, 'cli')
  await import(launcher.href)
} else {
  await import('../dist/main.js')
}
