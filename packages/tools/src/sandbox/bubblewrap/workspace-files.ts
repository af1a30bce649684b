import { posix } from 'node:path'
import { ToolError } from '@aworld-train/core'

const home = '/workspace'

/** Exit codes by which scripts of this file report what is wrong. */
const outcomes = { missing: 3, noFile: 4, outside: 5, unwritable: 6 } as const

/**
 * Programs in a jail do file operations, so whatever a link or a device in the workspace leads to is the jail's, and paths that change
 * while they are read change nothing outside. The script enters the folder, so that links on the way count as their targets.
 */
const inFolder = `folder=\${1%/*}; name=\${1##*/}
cd -P -- "$folder" 2>/dev/null || exit ${outcomes.missing}
case $PWD/ in ${home}/*) ;; *) exit ${outcomes.outside} ;; esac`

/** The target of a link must also be in the workspace. */
const throughLink = `if [ -L "$name" ]; then
  name=$(realpath -e -- "$name" 2>/dev/null) || exit ${outcomes.missing}
  case $name in ${home}/*) ;; *) exit ${outcomes.outside} ;; esac
fi`

/** Writes standard input, which has $3 bytes unless it was cut off, to the path $1, by way of the temporary name $2. */
export const putScript = `[ -d "\${1%/*}" ] || mkdir -p -- "\${1%/*}" || exit ${outcomes.unwritable}
${inFolder}
${throughLink}
if [ -e "$name" ] && [ ! -f "$name" ]; then exit ${outcomes.noFile}; fi
{ cat >&5 && read -r _ size < /proc/self/fdinfo/5 && [ "$size" = "$3" ]; } 5> "$2" && mv -fT -- "$2" "$name" || {
  rm -f -- "$2"
  exit ${outcomes.unwritable}
}`

/** Prints the first $2 bytes of the path $1. */
export const getScript = `${inFolder}
${throughLink}
[ -e "$name" ] || exit ${outcomes.missing}
[ -f "$name" ] || exit ${outcomes.noFile}
exec head -c "$2" -- "$name"`

/** The path as programs of the jail see it. A path outside the workspace is refused before anything runs. */
export function toJailPath(path: string): string {
  if (path.includes('\0')) throw new ToolError('A path cannot hold a NUL character.')
  const absolute = posix.resolve(home, path)
  if (!absolute.startsWith(`${home}/`)) throw fileError(path, outcomes.outside, '')
  return absolute
}

/** The error for a script's exit code, for the model to read. */
export function fileError(path: string, exitCode: number, errors: string): ToolError {
  const name = JSON.stringify(path)
  if (exitCode === outcomes.missing) return new ToolError(`There is no file ${name} in the workspace.`)
  if (exitCode === outcomes.noFile) return new ToolError(`${name} is not a regular file.`)
  if (exitCode === outcomes.outside) return new ToolError(`${name} is outside of the workspace; use a path below ${home}.`)
  if (errors.includes('No space left')) return new ToolError(`The workspace is full; ${name} was not written. Remove files first.`)
  return new ToolError(
    `${name} could not be read or written: ${
      errors
        .split('\n')
        .at(-1)
        ?.replace(/^.*?: /, '') || `exit code ${exitCode}`
    }.`,
  )
}
