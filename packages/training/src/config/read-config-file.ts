import { readFileSync } from 'node:fs'
import { TrainError } from '@aworld-train/core'
import { parseDocument } from 'yaml'

const ofScript = 'this is a script, which is not run to be read; write what it sets as keys of a YAML file.'

/** Reads the object in a YAML or JSON file. CONFIG_INVALID names file and line; `script` is what it says of a script. */
export function readConfigFile(path: string, script: string = ofScript): object {
  const refuse = (why: string, cause?: unknown) => new TrainError('CONFIG_INVALID', `${path}: ${why}`, { cause })
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw refuse('there is no such file; correct the path of the configuration.', error)
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') throw refuse('the file is not valid UTF-8; save it as UTF-8.', error)
    throw refuse(`the file cannot be read (${message}).`, error)
  }
  if (/\.(?:ba)?sh$/.test(path) || text.startsWith('#!')) throw refuse(script)
  const document = parseDocument(text)
  const [problem] = document.errors
  if (problem) throw refuse(`this is neither YAML nor JSON: ${problem.message}`, problem)
  const value: unknown = document.toJS()
  if (value === null || value === undefined) return {}
  if (typeof value !== 'object' || Array.isArray(value)) throw refuse('the file holds no mapping of keys to values.')
  return value
}
