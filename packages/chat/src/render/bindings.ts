import { compileExpression } from './compile-expression.ts'
import type { Frame, Scope } from './scope.ts'
import type * as Tree from './syntax-tree.ts'
import { iterate, Namespace, type Value } from './values.ts'

/** Names that a block itself sets. Inner blocks with variables of their own are left out. */
export function assignedNames(body: readonly Tree.Node[]): string[] {
  return body.flatMap((node) => {
    if (node.type === 'Macro') return [(node as Tree.Macro).name.value]
    if (node.type === 'Set') return targetNames((node as Tree.SetNode).assignee as Tree.Target)
    if (node.type !== 'If') return []
    const { body: yes, alternate } = node as Tree.If
    return [...assignedNames(yes), ...assignedNames(alternate)]
  })
}

export function targetNames(target: Tree.Target): string[] {
  if (target.type === 'Identifier') return [target.value as string]
  return target.type === 'TupleLiteral' ? (target.value as readonly Tree.Target[]).flatMap(targetNames) : []
}

/** Assigns a value to the names of a target. */
export type Bind = (frame: Frame, value: Value) => void

export function compileTarget(target: Tree.Target, scope: Scope): Bind {
  if (target.type === 'Identifier') return scope.write(target.value as string)
  if (target.type === 'MemberExpression') return compileField(target as unknown as Tree.Member, scope)
  if (target.type !== 'TupleLiteral') throw new SyntaxError(`setting a ${target.type} is not supported`)
  const parts = (target.value as readonly Tree.Target[]).map((part) => compileTarget(part, scope))
  return (frame, value) => {
    const values = iterate(value)
    if (values.length !== parts.length) throw new Error(`${parts.length} names cannot unpack ${values.length} values`)
    for (const [index, part] of parts.entries()) part(frame, values[index])
  }
}

function compileField({ object, property, computed }: Tree.Member, scope: Scope): Bind {
  if (computed) throw new SyntaxError('setting an item of a value is not supported')
  const owner = compileExpression(object, scope)
  const name = (property as Tree.Identifier).value
  return (frame, value) => {
    const namespace = owner(frame)
    if (!(namespace instanceof Namespace)) throw new Error('cannot assign attribute on non-namespace object')
    namespace.fields.set(name, value)
  }
}
