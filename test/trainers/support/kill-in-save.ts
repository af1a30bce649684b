// Loaded before a program (`--import`): it ends, as by a crash, before it begins the nth folder of a name, which `writeFolderWhole` fills
// beside its place. It is as the user's own process would die, since nothing else in it knows.
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'

const { AWORLD_TRAIN_TEST_FOLDER: folder, AWORLD_TRAIN_TEST_COUNT: count = '1' } = process.env
const { mkdtemp } = promises
let left = Number(count)

const ending = (...input: Parameters<typeof mkdtemp>) => {
  if (basename(input[0]) === `.${folder}-` && --left === 0) process.kill(process.pid, 'SIGKILL')
  return mkdtemp(...input)
}
Object.assign(promises, { mkdtemp: ending })
syncBuiltinESMExports()
