import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { NotReadable, type ShellState } from './shell-expand.ts'

/** Whether `[ … ]` of a condition holds; throws NotReadable where only running the script can tell. */
export function holds(command: readonly string[], state: ShellState): boolean {
  const bracketed = command[0] === '[' || command[0] === '[['
  const words = bracketed ? command.slice(1, -1) : command[0] === 'test' ? command.slice(1) : null
  if (command[0] === '!' && words === null) return !holds(command.slice(1), state)
  if (words === null) throw new NotReadable(`"if ${command.join(' ')}" is only known when it runs`)
  if (words[0] === '!') return !holds(['[', ...words.slice(1), ']'], state)
  const path = (name: string) => resolve(state.variables.get('PWD')!, name)
  const [a = '', b, c] = words
  if (words.length === 1) return a !== ''
  if (words.length <= 2 && a.startsWith('-')) {
    const operand = b ?? ''
    if (a === '-z') return operand === ''
    if (a === '-n') return operand !== ''
    if (a === '-e' || a === '-f' || a === '-d' || a === '-s' || a === '-r') {
      if (operand === '' || !existsSync(path(operand))) return false
      const status = statSync(path(operand))
      return a === '-d' ? status.isDirectory() : a === '-f' ? status.isFile() : true
    }
  }
  if (words.length === 3 && c !== undefined) {
    const compare: Record<string, (x: string, y: string) => boolean> = {
      '=': (x, y) => x === y,
      '==': (x, y) => x === y,
      '!=': (x, y) => x !== y,
      '-eq': (x, y) => Number(x) === Number(y),
      '-ne': (x, y) => Number(x) !== Number(y),
      '-gt': (x, y) => Number(x) > Number(y),
      '-ge': (x, y) => Number(x) >= Number(y),
      '-lt': (x, y) => Number(x) < Number(y),
      '-le': (x, y) => Number(x) <= Number(y),
    }
    const comparison = compare[b!]
    if (comparison) return comparison(a, c)
  }
  throw new NotReadable(`"if ${command.join(' ')}" is only known when it runs`)
}
