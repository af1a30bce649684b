import { commonPrefix } from '../common-prefix.ts'

/** A row of a batch, once for all samples that are equal to it, in the order of the rows' ids. */
export interface DistinctRow {
  readonly tokens: Int32Array
  /** Leading tokens that it shares with the row before it. */
  readonly common: number
  /** The rows of the batch that it stands for. */
  readonly members: readonly number[]
}

/**
 * Sorts rows by their ids and merges equal ones, so that a row lies behind the one that it shares most with. A function of the
 * set of rows but for the members' numbers. Where rows do not `fold`, each stands alone, in the order in which it came.
 */
export function distinctRows(rows: readonly Int32Array[], fold = true): DistinctRow[] {
  if (!fold) return rows.map((tokens, index) => ({ tokens, common: 0, members: [index] }))
  const order = rows.map((_, index) => index).sort((a, b) => compareRows(rows[a]!, rows[b]!) || a - b)
  const distinct: { readonly tokens: Int32Array; readonly common: number; readonly members: number[] }[] = []
  for (const index of order) {
    const tokens = rows[index]!
    const before = distinct.at(-1)
    const common = before ? commonPrefix(before.tokens, tokens) : 0
    if (common === tokens.length) before!.members.push(index)
    else distinct.push({ tokens, common, members: [index] })
  }
  return distinct
}

/** What one command can carry. */
export interface CommandCapacity {
  readonly rows: number
  /** Tokens that rows do not share, which bounds the time of a command. */
  readonly tokens: number
  /** Tokens of all rows, with those that they share and with each of their members. */
  readonly occurrences: number
}

/** Cuts rows into commands, each within the capacity; of a row with too many members each command has some. */
export function cutCommands(rows: readonly DistinctRow[], capacity: CommandCapacity): DistinctRow[][] {
  const commands: DistinctRow[][] = []
  let [tokens, occurrences] = [0, 0]
  for (const { tokens: ids, common, members } of rows) {
    const most = Math.floor(capacity.occurrences / ids.length)
    for (let first = 0; first < members.length; first += most) {
      const row = { tokens: ids, common, members: members.slice(first, first + most) }
      const [own, all] = [ids.length - common, ids.length * row.members.length]
      const last = commands.at(-1)
      if (last && last.length < capacity.rows && tokens + own <= capacity.tokens && occurrences + all <= capacity.occurrences) {
        last.push(row)
        tokens += own
        occurrences += all
      } else {
        commands.push([row])
        ;[tokens, occurrences] = [ids.length, all]
      }
    }
  }
  return commands
}

/** Rows laid one behind another, each with only the tokens that it does not share with the row before it in its pass. */
export interface FoldedRows {
  /** Ids of the tokens that are forwarded. */
  readonly tokens: Int32Array
  /** rows + 1: where each row's own tokens start. */
  readonly rowStarts: Int32Array
  /** Per row: tokens before its own ones, which rows before it in its pass forward. */
  readonly shared: Int32Array
  /** rows + 1, and the place of each token of each row, relative to the row's pass. */
  readonly pathStarts: Int32Array
  readonly paths: Int32Array
  /** First row of each pass, and first pass of each shard; each with its end. */
  readonly passes: readonly number[]
  readonly shardPasses: readonly number[]
  /** Per row: the place in `tokens` of each of its tokens. */
  readonly places: readonly Int32Array[]
}

/**
 * Lays rows out in shards and passes; a pass has at most `passTokens` tokens that are forwarded, or one row. In sorted order the
 * tokens that a row shares with any row before it lie on the path of the one before it.
 */
export function layOutRows(
  rows: readonly DistinctRow[],
  { shards, passTokens }: { readonly shards: number; readonly passTokens: number },
): FoldedRows {
  const total = rows.reduce((sum, { tokens }) => sum + tokens.length, 0)
  const [tokens, paths] = [new Int32Array(total), new Int32Array(total)]
  const [rowStarts, pathStarts] = [new Int32Array(rows.length + 1), new Int32Array(rows.length + 1)]
  const shared = new Int32Array(rows.length)
  const places: Int32Array[] = []
  const passes: number[] = []
  const shardPasses: number[] = []
  const shardStarts = cutShards(rows, shards)
  let [end, pathEnd, passStart] = [0, 0, 0]
  for (const [index, row] of rows.entries()) {
    const isShard = shardStarts[shardPasses.length] === index
    while (shardStarts[shardPasses.length] === index) shardPasses.push(passes.length)
    const isPass = isShard || end + row.tokens.length - row.common - passStart > passTokens
    if (isPass) {
      passes.push(index)
      passStart = end
    }
    const common = isPass ? 0 : row.common
    rowStarts[index] = end
    pathStarts[index] = pathEnd
    shared[index] = common
    const path = paths.subarray(pathEnd, pathEnd + row.tokens.length)
    if (common > 0) path.set(paths.subarray(pathStarts[index - 1]!, pathStarts[index - 1]! + common))
    for (let i = common; i < path.length; i++) path[i] = end - passStart + i - common
    tokens.set(row.tokens.subarray(common), end)
    places.push(path.map((place) => place + passStart))
    end += path.length - common
    pathEnd += path.length
  }
  while (shardPasses.length <= shards) shardPasses.push(passes.length)
  passes.push(rows.length)
  rowStarts[rows.length] = end
  pathStarts[rows.length] = pathEnd
  return { tokens: tokens.subarray(0, end), rowStarts, shared, pathStarts, paths, passes, shardPasses, places }
}

function compareRows(a: Int32Array, b: Int32Array): number {
  const common = commonPrefix(a, b)
  if (common === a.length || common === b.length) return a.length - b.length
  return a[common]! - b[common]!
}

/** How far from its goal a cut may be, in parts of a shard, to forward fewer tokens twice. */
const cutSlack = 1 / 8

/**
 * First row of each shard: contiguous rows with about equal tokens, cut where the fewest tokens are then forwarded twice. Depends on
 * the rows and the shards alone.
 */
function cutShards(rows: readonly DistinctRow[], shards: number): number[] {
  // Tokens before each row.
  const before = [0]
  for (const { tokens, common } of rows) before.push(before.at(-1)! + tokens.length - common)
  const part = before.at(-1)! / shards
  const starts = [0]
  for (let shard = 1; shard < shards; shard++) {
    const distance = (row: number): number => Math.abs(before[row]! - part * shard)
    const repeated = (row: number): number => rows[row]?.common ?? 0
    const isNear = (row: number): boolean => distance(row) <= part * cutSlack
    let best = starts.at(-1)!
    for (let row = best + 1; row <= rows.length; row++) {
      const isBetter = isNear(row) && isNear(best) ? repeated(row) < repeated(best) : distance(row) < distance(best)
      if (isBetter) best = row
    }
    starts.push(best)
  }
  return starts
}
