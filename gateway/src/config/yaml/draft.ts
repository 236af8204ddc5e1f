import { formatPath, type Path } from '../../schema/path.ts'
import type { SourceItem, SourceValue } from './source.ts'
import type { YamlEntry, YamlTree } from './yaml.ts'

/**
 * A change of a document: replaces the value at a path, appends an item to the list at a path, or removes the
 * entry or item at a path. Missing maps and lists on the path are created; a number in the path is a list
 * index.
 */
export type YamlEdit =
  | { op: 'set'; path: Path; value: unknown }
  | { op: 'append'; path: Path; value: unknown }
  | { op: 'remove'; path: Path }

/** A document under change: its new value, and the parts of it that are in the text. */
export type Draft =
  /** Unchanged text. */
  | { kind: 'kept'; tree: YamlTree; source: SourceValue | undefined }
  | { kind: 'scalar'; value: string | number | boolean | null }
  | { kind: 'map'; entries: Map<string, DraftEntry>; original: Original | undefined }
  | { kind: 'list'; items: DraftEntry[]; original: Original | undefined }

/** `item` is the entry in the text, if there is one. Entries with an item precede those without. */
export type DraftEntry = { draft: Draft; item: SourceItem | undefined }

/** The text of a changed collection, with all of its original items. */
export type Original = { source: SourceValue; items: SourceItem[] }

/** A refused edit, with a message for users. Internal: `editYaml` returns it. */
export class EditRefusal extends Error {}

const maxDepth = 100

/** The draft after an edit. Drafts are mutable. Throws `EditRefusal`. */
export function applyEdit(root: Draft, edit: YamlEdit): Draft {
  if (edit.path.length === 0) throw new EditRefusal('an edit must have a path')
  return changed(root, edit, 0)
}

/** Bound on a comparison: nested aliases can make a small file infinite. */
export type Budget = { left: number; depth: number }

const maxComparedDepth = 1_000

/**
 * Whether two values are equal as plain JSON, regardless of notation. Throws `EditRefusal` above the budget.
 */
export function sameValue(one: Draft | YamlTree, other: Draft | YamlTree, budget: Budget): boolean {
  if (--budget.left < 0 || ++budget.depth > maxComparedDepth) {
    throw new EditRefusal('the aliases of the file expand to more than is allowed')
  }
  const same = sameResolved(resolved(one), resolved(other), budget)
  budget.depth--
  return same
}

function sameResolved(one: Resolved, other: Resolved, budget: Budget): boolean {
  if (one === other) return true
  if (one.kind === 'scalar') return other.kind === 'scalar' && one.value === other.value
  if (one.kind === 'map') return other.kind === 'map' && sameEntries(one.entries, other.entries, budget)
  if (other.kind !== 'list' || one.items.length !== other.items.length) return false
  const others = other.items
  return one.items.every((item, index) => {
    const counterpart = others[index]
    return counterpart !== undefined && sameValue(held(item), held(counterpart), budget)
  })
}

type Entries = ReadonlyMap<string, DraftEntry | YamlEntry>

function sameEntries(one: Entries, other: Entries, budget: Budget): boolean {
  if (one.size !== other.size) return false
  for (const [key, entry] of one) {
    const counterpart = other.get(key)
    if (counterpart === undefined || !sameValue(held(entry), held(counterpart), budget)) return false
  }
  return true
}

type Resolved = Exclude<Draft, { kind: 'kept' }> | Exclude<YamlTree, { kind: 'alias' }>

function resolved(value: Draft | YamlTree): Resolved {
  if (value.kind === 'kept') return resolved(value.tree)
  if (value.kind === 'alias') return resolved(value.target)
  return value
}

function held(entry: DraftEntry | YamlEntry | YamlTree): Draft | YamlTree {
  if ('draft' in entry) return entry.draft
  // The value of a map entry is a tree, that of a scalar tree is not.
  return 'keyOffset' in entry ? entry.value : entry
}

/** The draft of the value at the first `depth` steps of the path, after the edit. */
function changed(draft: Draft | undefined, edit: YamlEdit, depth: number): Draft {
  const step = edit.path[depth]
  if (step === undefined) return changedHere(draft, edit)
  const open = openFor(draft, step, edit.path.slice(0, depth))
  const last = depth === edit.path.length - 1
  if (edit.op === 'remove' && last) removeEntry(open, step, edit.path)
  else changeEntry(open, step, edit, depth)
  return open
}

function changedHere(draft: Draft | undefined, edit: YamlEdit): Draft {
  if (edit.op === 'remove') throw new EditRefusal(`nothing is removed at ${formatPath(edit.path)}`)
  const value = draftOf(edit.value, edit.path, 0)
  if (edit.op === 'set') return draft === undefined ? value : merged(draft, value)
  const list = openFor(draft, 0, edit.path)
  if (list.kind === 'list') list.items.push({ draft: value, item: undefined })
  return list
}

type OpenDraft = Extract<Draft, { kind: 'map' | 'list' }>

/** The collection for the next step of the path; created if missing. */
function openFor(draft: Draft | undefined, step: string | number, path: Path): OpenDraft {
  const kind = typeof step === 'number' ? 'list' : 'map'
  const open = draft === undefined || isNull(draft) ? emptyDraft(kind) : opened(draft, path)
  if (open?.kind === kind) return open
  const words = kind === 'list' ? 'a list' : 'a mapping'
  throw new EditRefusal(`${named(path)} is not ${words}`)
}

function isNull(draft: Draft): boolean {
  return draft.kind === 'kept'
    ? draft.tree.kind === 'scalar' && draft.tree.value === null
    : draft.kind === 'scalar' && draft.value === null
}

function emptyDraft(kind: 'map' | 'list'): OpenDraft {
  return kind === 'map'
    ? { kind, entries: new Map(), original: undefined }
    : { kind, items: [], original: undefined }
}

/** A collection with its entries as separate drafts; undefined for scalars. */
function opened(draft: Draft, path: Path): OpenDraft | undefined {
  if (draft.kind === 'scalar') return undefined
  if (draft.kind !== 'kept') return draft
  const { tree, source } = draft
  if (tree.kind === 'scalar') return undefined
  if (tree.kind === 'alias') {
    throw new EditRefusal(`${named(path)} is an alias of another value in the file; edit that value manually`)
  }
  if (source === undefined) throw new EditRefusal(`${named(path)} is written in an unsupported form`)
  const items = source.items()
  const original = { source, items }
  const trees = tree.kind === 'list' ? tree.items : [...tree.entries.values()].map(({ value }) => value)
  if (trees.length !== items.length || items.some(({ odd }) => odd)) {
    throw new EditRefusal(`${named(path)} is written in an unsupported form; edit it manually`)
  }
  const entries = trees.map((child, index): DraftEntry => {
    const item = items[index]
    return { draft: { kind: 'kept', tree: child, source: item?.value }, item }
  })
  if (tree.kind === 'list') return { kind: 'list', items: entries, original }
  const keys = [...tree.entries.keys()]
  return {
    kind: 'map',
    entries: new Map(entries.map((entry, index) => [keys[index] ?? '', entry])),
    original,
  }
}

function named(path: Path): string {
  return path.length === 0 ? 'the document' : formatPath(path)
}

function removeEntry(open: OpenDraft, step: string | number, path: Path): void {
  const found = open.kind === 'map' ? open.entries.delete(String(step)) : removeItem(open.items, Number(step))
  if (!found) throw new EditRefusal(`there is nothing at ${formatPath(path)}`)
}

function removeItem(items: DraftEntry[], index: number): boolean {
  return index >= 0 && items.splice(index, 1).length > 0
}

function changeEntry(open: OpenDraft, step: string | number, edit: YamlEdit, depth: number): void {
  const entry = open.kind === 'map' ? open.entries.get(String(step)) : open.items[Number(step)]
  if (entry !== undefined) {
    entry.draft = changed(entry.draft, edit, depth + 1)
    return
  }
  const path = edit.path.slice(0, depth + 1)
  const further = open.kind === 'list' && step !== open.items.length
  if (edit.op === 'remove' || further) throw new EditRefusal(`there is nothing at ${formatPath(path)}`)
  const draft = changed(undefined, edit, depth + 1)
  if (open.kind === 'list') open.items.push({ draft, item: undefined })
  else open.entries.set(String(step), { draft, item: undefined })
}

/** The new value with the text of the old one where they are equal, comments included. */
function merged(old: Draft, value: Draft): Draft {
  if (sameValue(old, value, { left: maxComparisons, depth: 0 })) return old
  const alias = old.kind === 'kept' && old.tree.kind === 'alias'
  if (alias || value.kind === 'scalar' || value.kind === 'kept') return value
  const open = isOdd(old) ? undefined : opened(old, [])
  if (open?.kind === 'map' && value.kind === 'map') return mergedMap(open, value.entries)
  if (open?.kind === 'list' && value.kind === 'list') return mergedList(open, value.items)
  return value
}

const maxComparisons = 10_000_000

/** Whether the text of a collection can only be replaced as a whole. */
function isOdd(draft: Draft): boolean {
  return draft.kind === 'kept' && draft.source?.items().some(({ odd }) => odd) === true
}

function mergedMap(open: OpenDraft & { kind: 'map' }, entries: ReadonlyMap<string, DraftEntry>): Draft {
  for (const key of [...open.entries.keys()]) if (!entries.has(key)) open.entries.delete(key)
  for (const [key, { draft }] of entries) {
    const entry = open.entries.get(key)
    if (entry === undefined) open.entries.set(key, { draft, item: undefined })
    else entry.draft = merged(entry.draft, draft)
  }
  return open
}

/** Matches items in order by identity; an item without a match replaces an old one. */
function mergedList(open: OpenDraft & { kind: 'list' }, items: readonly DraftEntry[]): Draft {
  const identities = items.map(({ draft }) => identityOf(draft))
  const olds = open.items.map(({ draft }) => identityOf(draft))
  const ahead = countOf(olds)
  const merging: DraftEntry[] = []
  let next = 0
  open.items.forEach((entry, index) => {
    const old = olds[index] ?? ''
    ahead.set(old, (ahead.get(old) ?? 1) - 1)
    const item = items[next]
    const identity = identities[next] ?? ''
    // No item remains, or the next one has its own match further down.
    if (item === undefined || (identity !== old && (ahead.get(identity) ?? 0) > 0)) return
    merging.push({ draft: merged(entry.draft, item.draft), item: entry.item })
    next++
  })
  const added = items.slice(next).map(({ draft }) => ({ draft, item: undefined }))
  return { ...open, items: [...merging, ...added] }
}

function countOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

/** Identifying members of list items in a configuration. */
const identifying = ['id', 'name', 'key', 'keyHash']

function identityOf(draft: Draft): string {
  const value = resolved(draft)
  if (value.kind === 'scalar') return `${typeof value.value} ${value.value}`
  if (value.kind === 'list') return `list ${value.items.length}`
  for (const name of identifying) {
    const entry = value.entries.get(name)
    const member = entry === undefined ? undefined : resolved(held(entry))
    if (member?.kind === 'scalar') return `${name} ${member.value}`
  }
  return `map ${[...value.entries.keys()].join(' ')}`
}

/** A plain JSON value as a draft. */
function draftOf(value: unknown, path: Path, depth: number): Draft {
  if (depth > maxDepth) throw new EditRefusal(`the value for ${formatPath(path)} is nested too deeply`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') {
    return { kind: 'scalar', value }
  }
  if (typeof value === 'number') return { kind: 'scalar', value: exactNumber(value, path) }
  if (Array.isArray(value)) {
    const items = value.map((item) => ({ draft: draftOf(item, path, depth + 1), item: undefined }))
    return { kind: 'list', items, original: undefined }
  }
  if (typeof value !== 'object') throw new EditRefusal(`the value for ${formatPath(path)} is not plain JSON`)
  const entries = new Map<string, DraftEntry>()
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) entries.set(key, { draft: draftOf(member, path, depth + 1), item: undefined })
  }
  return { kind: 'map', entries, original: undefined }
}

function exactNumber(value: number, path: Path): number {
  if (Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))) return value
  throw new EditRefusal(`the value for ${formatPath(path)} contains a number that would be rounded`)
}
