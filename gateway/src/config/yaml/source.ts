// Positions of the values of a YAML document in its text, from the tokens of the parser.

/** Position of a value. Offsets count UTF-16 units. */
export type SourceValue = {
  kind: 'scalar' | 'single-quoted' | 'double-quoted' | 'block-scalar' | 'alias' | SourceCollection
  /** Its first character, after its anchor and tag. */
  start: number
  /**
   * After its last character; for block values without the final line break, unless it is part of the value.
   */
  end: number
  /** After the `|` or `>` of block text; otherwise equal to `end`. */
  headerEnd: number
  /** The items of a collection, in the order of the tree; a new list for each call. */
  items(): SourceItem[]
}

export type SourceCollection = 'block-map' | 'block-list' | 'flow-map' | 'flow-list'

/** An entry of a map or an item of a list. */
export type SourceItem = {
  /** The dash, or the key with its anchor and tag. */
  start: number
  /** After the `:` or the dash; for flow lists the start of the item. Undefined for a key without a `:`. */
  valueAt: number | undefined
  /** The anchor and tag of the value, if present. */
  props: { start: number; end: number; anchor: number | undefined } | undefined
  value: SourceValue | undefined
  /** After its last character, without a trailing comment. */
  end: number
  /** Offset of the comma after it. */
  comma: number | undefined
  /** Written with `? `, or a pair inside `[…]`. */
  odd: boolean
}

/** An alias and the anchor that it refers to, as offsets. */
export type SourceReference = { anchor: number; alias: number }

/**
 * The fields in use of a parser token: a value, or a separator such as a colon, a comment or a line break.
 */
export type Token = {
  type: string
  offset: number
  source?: string | undefined
  items?: ItemToken[] | undefined
  /** The opening bracket of a flow collection. */
  start?: Token | Token[] | undefined
  end?: Token[] | undefined
  /** The header and other tokens before block text. */
  props?: Token[] | undefined
}

type ItemToken = {
  /** Tokens before the key, or before the value of a list item. */
  start: Token[]
  key?: Token | null | undefined
  /** Tokens between key and value. */
  sep?: Token[] | undefined
  value?: Token | null | undefined
}

/** The position of a value, with its items on demand; undefined for an empty value. */
export function sourceValue(token: Token): SourceValue | undefined {
  const kind = sourceKind(token)
  if (kind === undefined) return undefined
  const header = token.props?.find(({ type }) => type === 'block-scalar-header')
  const end = endOf(token)
  return {
    kind,
    start: header === undefined ? startOf(token) : header.offset,
    end,
    headerEnd: header === undefined ? end : tokenEnd(header),
    items: () => sourceItems(token),
  }
}

function sourceKind(token: Token): SourceValue['kind'] | undefined {
  switch (token.type) {
    case 'scalar':
      // A key without a value is an empty scalar to the parser.
      return token.source === '' ? undefined : 'scalar'
    case 'single-quoted-scalar':
      return 'single-quoted'
    case 'double-quoted-scalar':
      return 'double-quoted'
    case 'block-scalar':
    case 'alias':
    case 'block-map':
      return token.type
    case 'block-seq':
      return 'block-list'
    case 'flow-collection':
      return opensList(token) ? 'flow-list' : 'flow-map'
    default:
      return undefined
  }
}

function opensList({ start }: Token): boolean {
  return start !== undefined && !Array.isArray(start) && start.type === 'flow-seq-start'
}

function sourceItems(token: Token): SourceItem[] {
  const list = token.type === 'block-seq' || opensList(token)
  const items: SourceItem[] = []
  for (const item of token.items ?? []) {
    // A comma opens the token of the item after it.
    const comma = item.start.find(({ type }) => type === 'comma')
    const before = items.at(-1)
    if (comma !== undefined && before !== undefined) before.comma = comma.offset
    if (isItem(item)) items.push(sourceItem(item, list))
  }
  return items
}

/** Comments after the last item make an item token of their own. */
function isItem({ start, key, sep, value }: ItemToken): boolean {
  if (key !== undefined || sep !== undefined || value !== undefined) return true
  return start.some(({ type }) => type === 'seq-item-ind')
}

function sourceItem(item: ItemToken, list: boolean): SourceItem {
  const value = item.value === undefined || item.value === null ? undefined : sourceValue(item.value)
  const dash = item.start.find(({ type }) => type === 'seq-item-ind')
  const colon = item.sep?.find(({ type }) => type === 'map-value-ind')
  const start = startOfItem(item)
  const indicator = dash ?? colon
  const props = propsOf(list ? item.start : (item.sep ?? []))
  const pair = item.key !== undefined || item.sep !== undefined
  return {
    start,
    valueAt: indicator === undefined ? (list ? start : undefined) : tokenEnd(indicator),
    props,
    value,
    end: endOfItem(item),
    comma: undefined,
    odd: list ? pair : item.start.some(({ type }) => type === 'explicit-key-ind'),
  }
}

function propsOf(tokens: readonly Token[]): SourceItem['props'] {
  const props = tokens.filter(({ type }) => type === 'anchor' || type === 'tag')
  const [first, last] = [props[0], props.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const anchor = props.find(({ type }) => type === 'anchor')
  return { start: first.offset, end: tokenEnd(last), anchor: anchor?.offset }
}

function startOfItem(item: ItemToken): number {
  const first = item.start.find(isInk) ?? item.key ?? item.sep?.find(isInk) ?? item.value
  return first === undefined || first === null ? 0 : startOf(first)
}

function endOfItem(item: ItemToken): number {
  if (item.value && sourceKind(item.value) !== undefined) return endOf(item.value)
  const last = item.sep?.findLast(isInk)
  if (last !== undefined) return tokenEnd(last)
  if (item.key) return endOf(item.key)
  const mark = item.start.findLast(isInk)
  return mark === undefined ? 0 : tokenEnd(mark)
}

/** The first token other than whitespace. A comma belongs to no item. */
function isInk({ type }: Token): boolean {
  return type !== 'space' && type !== 'newline' && type !== 'comment' && type !== 'comma'
}

/** The library's offset of a block collection is that of its first key, without the anchor of that key. */
function startOf(token: Token): number {
  if (token.type !== 'block-map' && token.type !== 'block-seq') return token.offset
  const first = token.items?.[0]
  return first === undefined ? token.offset : startOfItem(first)
}

function endOf(token: Token): number {
  switch (token.type) {
    case 'block-map':
    case 'block-seq': {
      const last = token.items?.findLast(isItem)
      return last === undefined ? token.offset : endOfItem(last)
    }
    case 'flow-collection': {
      const bracket = token.end?.find(({ type }) => type === 'flow-map-end' || type === 'flow-seq-end')
      return bracket === undefined ? token.offset : tokenEnd(bracket)
    }
    case 'block-scalar':
      return endOfBlockText(token)
    default:
      return tokenEnd(token)
  }
}

/** Final line breaks are part of the text only with `+` in the header. */
function endOfBlockText({ offset, props = [], source = '' }: Token): number {
  const header = props.find(({ type }) => type === 'block-scalar-header')
  const start = props.reduce((end, prop) => Math.max(end, tokenEnd(prop)), offset)
  if (source.trim() === '') return header === undefined ? start : tokenEnd(header)
  const kept = header?.source?.includes('+') === true
  return start + (kept ? source.replace(/\r?\n$/, '') : source.trimEnd()).length
}

function tokenEnd({ offset, source = '' }: Token): number {
  return offset + source.length
}

/** Each alias with the last preceding anchor of its name. */
export function referencesOf(root: Token): SourceReference[] {
  const anchors = new Map<string, number>()
  const found: SourceReference[] = []
  const note = (tokens: readonly Token[] = []) => {
    for (const { type, source = '', offset } of tokens)
      if (type === 'anchor') anchors.set(source.slice(1), offset)
  }
  const visit = (token: Token | null | undefined): void => {
    if (token === null || token === undefined) return
    if (token.type === 'alias') {
      const anchor = anchors.get(token.source?.slice(1) ?? '')
      if (anchor !== undefined) found.push({ anchor, alias: token.offset })
    }
    for (const { start, key, sep, value } of token.items ?? []) {
      note(start)
      visit(key)
      note(sep)
      visit(value)
    }
  }
  visit(root)
  return found
}
