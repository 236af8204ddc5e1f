import { History, type LucideIcon, Monitor, Moon, Plus, ScrollText, Sun } from 'lucide-react'
import { navigation } from '../../navigation.ts'
import { setTheme } from '../../theme.ts'

type EntryLook = {
  readonly group: string
  readonly label: string
  readonly icon: LucideIcon
  readonly hint?: string
  /** Further words that find the entry. */
  readonly words?: string
}

export type PaletteEntry =
  | (EntryLook & { readonly kind: 'page'; readonly path: string })
  | (EntryLook & { readonly kind: 'action'; run(): void })

type Conditions = { readonly mayChange: boolean; readonly recent: readonly string[] }

const pages: readonly PaletteEntry[] = navigation.flatMap(({ label: hint, items }) =>
  items.map((item) => ({ ...item, kind: 'page' as const, group: 'Pages', hint })),
)

const additions: readonly PaletteEntry[] = [
  ['Create key', '/llm/keys/new', 'new add virtual api key'],
  ['Add model', '/llm/models/new', 'new create llm'],
  ['Add virtual model', '/llm/virtual-models/new', 'new create failover'],
  ['Add provider', '/llm/providers/new', 'new create credential'],
  ['Add MCP server', '/mcp/servers/new', 'new create target tools'],
  ['Add route', '/traffic/routes/new', 'new create http'],
  ['Add gateway', '/traffic/gateways/new', 'new create port listener'],
].map(([label = '', path = '', words = '']) => ({
  kind: 'page',
  group: 'Actions',
  label,
  path,
  words,
  icon: Plus,
}))

const appearance: readonly PaletteEntry[] = [
  { theme: 'light', icon: Sun } as const,
  { theme: 'dark', icon: Moon } as const,
  { theme: 'system', icon: Monitor } as const,
].map(({ theme, icon }) => ({
  kind: 'action',
  group: 'Actions',
  label: `Theme: ${theme}`,
  words: 'appearance colours',
  icon,
  run: () => setTheme(theme),
}))

const requestId = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/** Entries that need no search of the server. Without a text: recent pages, then all pages. */
export function staticEntries(text: string, { mayChange, recent }: Conditions): readonly PaletteEntry[] {
  const query = text.trim()
  if (query === '') return [...recentEntries(recent), ...pages]
  if (requestId.test(query)) return [requestEntry(query)]
  const actions = [...(mayChange ? additions : []), ...appearance]
  return [...matching(pages, query), ...matching(actions, query)]
}

function matching(entries: readonly PaletteEntry[], query: string): readonly PaletteEntry[] {
  const words = query.toLowerCase().split(/\s+/)
  const found = entries.filter(({ label, hint = '', words: more = '' }) => {
    const content = `${label} ${hint} ${more}`.toLowerCase()
    return words.every((word) => content.includes(word))
  })
  // Names before further words.
  const begins = ({ label }: PaletteEntry) => label.toLowerCase().startsWith(words[0] ?? '')
  return [...found.filter(begins), ...found.filter((entry) => !begins(entry))]
}

function requestEntry(id: string): PaletteEntry {
  return { kind: 'page', group: 'Request', label: id, path: `/requests/${id}`, icon: ScrollText }
}

function recentEntries(recent: readonly string[]): readonly PaletteEntry[] {
  return recent.map((path) => {
    const page = pages.find((entry) => entry.kind === 'page' && entry.path === path)
    return {
      kind: 'page',
      group: 'Recent',
      label: page?.label ?? decodeURI(path.slice(1)),
      path,
      icon: page?.icon ?? History,
      ...(page?.hint && { hint: page.hint }),
    }
  })
}
