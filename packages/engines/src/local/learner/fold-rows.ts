import { commonPrefix } from '../common-prefix.ts'

/** A row of a batch, once for all equal samples, in the order of the rows' ids. */
export interface DistinctRow {
  readonly tokens: Int32Array
  /** Number of leading tokens that it shares with the row before it. */
  readonly common: number
  /** The rows of the batch that are equal to it. */
  readonly members: readonly number[]
}

/**
 * Sorts rows by their ids and merges equal ones, so that each row follows the one that it shares most with. Except for the members'
 * numbers, the result depends only on the set of rows. If rows do not `fold`, each stays alone, in the given order.
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

/** Capacity of one command. */
export interface CommandCapacity {
  readonly rows: number
  /** Most tokens that rows do not share, which bounds the time of a command. */
  readonly tokens: number
  /** Most tokens of all rows, counted with shared ones and once for each member. */
  readonly occurrences: number
}

/** Splits rows into commands within the capacity. The members of a row with too many of them are split over several commands. */
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

/** Rows one after another, each with only the tokens that it does not share with the row before it in its pass. */
export interface FoldedRows {
  /** Ids of the forwarded tokens. */
  readonly tokens: Int32Array
  /** rows + 1: start of each row's own tokens. */
  readonly rowStarts: Int32Array
  /** Per row: tokens before its own ones, which earlier rows of its pass forward. */
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
 * Lays rows out in shards and passes. A pass has at most `passTokens` forwarded tokens, or one row. In sorted order, the tokens that a row
 * shares with any earlier row are on the path of the row before it.
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

/** Largest distance of a cut from its goal, in parts of a shard, that saves forwarding tokens twice. */
const cutSlack = 1 / 4

/**
 * First row of each shard. Shards are contiguous rows with about equal tokens, cut where the fewest tokens are forwarded twice. The result
 * depends only on the rows and the shards.
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
