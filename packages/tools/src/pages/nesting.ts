/** Elements that end by themselves, or where the next one begins. */
const shallow = new Set(
  'area base br col embed hr img input link meta param source track wbr p li dt dd option optgroup tr td th thead tbody tfoot colgroup rp rt'.split(
    ' ',
  ),
)

/** Approximate depth to which elements of an HTML text are nested. It recognises a page that would take minutes to read. */
export function nestingOf(html: string): number {
  let depth = 0
  let deepest = 0
  for (const [tag, closing, name] of html.matchAll(/<(\/?)([a-z][^\s/<>]*)[^<>]*>/gi)) {
    if (shallow.has(name!.toLowerCase()) || tag.endsWith('/>')) continue
    depth = closing ? Math.max(0, depth - 1) : depth + 1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}
