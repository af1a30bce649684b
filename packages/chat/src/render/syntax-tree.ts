/** The used parts of the nodes of the parser's syntax tree. */
export interface Node {
  readonly type: string
}
export interface NodeOf<T extends string> extends Node {
  readonly type: T
}
export interface Identifier extends NodeOf<'Identifier'> {
  readonly value: string
}
export interface Keyword extends NodeOf<'KeywordArgumentExpression'> {
  readonly key: Identifier
  readonly value: Node
}
export interface Call extends NodeOf<'CallExpression'> {
  readonly callee: Node
  readonly args: readonly Node[]
}
export interface Member extends NodeOf<'MemberExpression'> {
  readonly object: Node
  readonly property: Node
  readonly computed: boolean
}
export interface Slice extends NodeOf<'SliceExpression'> {
  readonly start?: Node
  readonly stop?: Node
  readonly step?: Node
}
export interface Binary extends NodeOf<'BinaryExpression'> {
  readonly operator: { readonly value: string }
  readonly left: Node
  readonly right: Node
}
export interface Unary extends NodeOf<'UnaryExpression'> {
  readonly operator: { readonly value: string }
  readonly argument: Node
}
export interface Filtered extends NodeOf<'FilterExpression'> {
  readonly operand: Node
  readonly filter: Identifier | Call
}
export interface Tested extends NodeOf<'TestExpression'> {
  readonly operand: Node
  readonly negate: boolean
  readonly test: Identifier
}
export interface Selected extends NodeOf<'SelectExpression'> {
  readonly lhs: Node
  readonly test: Node
}
export interface Ternary extends NodeOf<'Ternary'> {
  readonly condition: Node
  readonly trueExpr: Node
  readonly falseExpr: Node
}
export interface Literal<T> extends Node {
  readonly value: T
}
export interface Target extends Node {
  readonly value: string | readonly Target[]
}
export interface If extends NodeOf<'If'> {
  readonly test: Node
  readonly body: readonly Node[]
  readonly alternate: readonly Node[]
}
export interface For extends NodeOf<'For'> {
  readonly loopvar: Target
  readonly iterable: Node
  readonly body: readonly Node[]
  readonly defaultBlock: readonly Node[]
}
export interface SetNode extends NodeOf<'Set'> {
  readonly assignee: Node
  readonly value: Node | null
  readonly body: readonly Node[]
}
export interface Macro extends NodeOf<'Macro'> {
  readonly name: Identifier
  readonly args: readonly (Identifier | Keyword)[]
  readonly body: readonly Node[]
}
export interface CallBlock extends NodeOf<'CallStatement'> {
  readonly call: Call
  readonly callerArgs: readonly (Identifier | Keyword)[] | null
  readonly body: readonly Node[]
}
export interface FilterBlock extends NodeOf<'FilterStatement'> {
  readonly filter: Identifier | Call
  readonly body: readonly Node[]
}
