/** Place of the cursor in YAML text: the path of the object around it, and what is typed. */
export type YamlPlace = {
  /** Keys of the objects around; an item of a list is 0. */
  readonly path: readonly (string | number)[]
  /** Key of the value at the cursor; undefined if a key is typed. */
  readonly key: string | undefined
  /** Start of the typed word. */
  readonly from: number
  /** Keys of the same object. */
  readonly siblings: readonly string[]
}

const keyLine =
  /^(\s*)((?:- )*)(?:"([^"]*)"|'([^']*)'|([^\s#'"{}[\],&*!|>%@`-][^#]*?|-[^\s#][^#]*?))\s*:(?:\s|$)/
const maxLinesAbove = 5_000

/** Reads the place by indentation, so that text that is no YAML yet has one too. Flow collections have none. */
export function yamlPlaceAt(text: string, offset: number): YamlPlace | undefined {
  const lines = text.slice(0, offset).split('\n')
  const current = lines.pop() ?? ''
  if (/[{[]/.test(current) || /#/.test(current)) return undefined
  const match = keyLine.exec(current)
  const typed = /[\w$./*-]*$/.exec(current)?.[0] ?? ''
  const from = offset - typed.length
  const indent = contentStart(current)
  const key = match ? keyOf(match) : undefined
  const path = pathAbove(
    lines,
    indent,
    /^\s*(?:- )+/.test(current) || /^\s*-\s*$/.test(current) ? current : undefined,
  )
  const below = text.slice(offset).split('\n').slice(1)
  return { path, key, from, siblings: siblingsOf(lines, below, indent) }
}

function keyOf(match: RegExpExecArray): string {
  return match[3] ?? match[4] ?? match[5] ?? ''
}

/** Column of the first character after indentation and list marks. */
function contentStart(line: string): number {
  return /^\s*(?:-\s+)*/.exec(line)?.[0].length ?? 0
}

/** Keys and items around a line with this indentation, outermost first. */
function pathAbove(
  lines: readonly string[],
  indent: number,
  ownItem: string | undefined,
): readonly (string | number)[] {
  const path: (string | number)[] = []
  let limit = indent
  if (ownItem !== undefined) {
    for (const _ of ownItem.matchAll(/-(?:\s|$)/g)) path.unshift(0)
    limit = ownItem.search(/-/)
    limit += 0.5
  }
  const start = Math.max(0, lines.length - maxLinesAbove)
  for (let index = lines.length - 1; index >= start && limit > 0; index--) {
    const line = lines[index] ?? ''
    if (line.trim() === '' || line.trim().startsWith('#')) continue
    const spaces = line.search(/\S/)
    const content = contentStart(line)
    const match = keyLine.exec(line)
    const dash = /^\s*-(?:\s|$)/.test(line)
    if (match && content < limit) {
      path.unshift(keyOf(match))
      limit = content
    }
    if (dash && spaces < limit && (content <= limit || !match)) {
      if (content >= limit || match === null || content === limit) path.unshift(0)
      limit = spaces + 0.5
    }
  }
  return path
}

function siblingsOf(above: readonly string[], below: readonly string[], indent: number): readonly string[] {
  const found: string[] = []
  const visit = (lines: readonly string[]) => {
    for (const line of lines) {
      if (line.trim() === '') continue
      const content = contentStart(line)
      if (content < indent) return
      const match = content === indent ? keyLine.exec(line) : null
      if (match) found.push(keyOf(match))
      if (content === indent && /^\s*-/.test(line)) return
    }
  }
  visit(above.toReversed().slice(0, maxLinesAbove))
  visit(below.slice(0, maxLinesAbove))
  return found
}
