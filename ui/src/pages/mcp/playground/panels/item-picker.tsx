import { PackageOpen } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { classNames } from '../../../../components/class-names.ts'
import { EmptyState } from '../../../../components/feedback/empty-state.tsx'
import { SearchInput } from '../../../../components/form/search-input.tsx'
import { Card } from '../../../../components/layout/card.tsx'
import type { McpItem } from '../../queries.ts'
import { descriptionOf, matches, nameOf, titleOf } from '../../servers/item.ts'

/** Items that are rendered at once. */
const maxShown = 300

type Props = {
  /** Plural, in lower case. */
  readonly noun: string
  readonly items: readonly McpItem[]
  readonly chosen: string
  onChoose(name: string): void
  /** The chosen item. */
  children(item: McpItem): ReactNode
}

/** A list of items beside the chosen one. */
export function ItemPicker({ noun, items, chosen, onChoose, children }: Props) {
  const [search, setSearch] = useState('')
  const found = items.filter((item) => matches(item, search))
  const item = items.find((one) => nameOf(one) === chosen || withoutPrefix(nameOf(one)) === chosen)
  if (items.length === 0)
    return (
      <Card>
        <EmptyState icon={PackageOpen} title={`The endpoint offers no ${noun}`}>
          Rules may hide them from this client: “Access” displays the reason.
        </EmptyState>
      </Card>
    )
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-[20rem_minmax(0,1fr)]">
      <Card flush className="lg:sticky lg:top-17">
        <div className="p-3">
          <SearchInput label={`Search ${noun}`} value={search} onChange={setSearch} />
        </div>
        <ul aria-label={noun} className="max-h-64 overflow-y-auto border-t border-line lg:max-h-[60dvh]">
          {found.slice(0, maxShown).map((one) => (
            <li key={nameOf(one)}>
              <button
                type="button"
                aria-current={one === item || undefined}
                onClick={() => onChoose(nameOf(one))}
                className={classNames(
                  'block w-full border-l-2 px-3 py-2 text-left -outline-offset-2',
                  one === item ? 'border-accent bg-accent-soft' : 'border-transparent hover:bg-hover',
                )}
              >
                <bdi className="block font-mono text-xs break-all">{nameOf(one)}</bdi>
                <bdi className="line-clamp-1 text-xs text-ink-soft">{titleOf(one) ?? descriptionOf(one)}</bdi>
              </button>
            </li>
          ))}
          {found.length === 0 && <li className="px-3 py-4 text-sm text-ink-soft">Nothing matches.</li>}
          {found.length > maxShown && (
            <li className="px-3 py-2 text-xs text-ink-faint">
              {found.length - maxShown} more: search for them.
            </li>
          )}
        </ul>
      </Card>
      <div className="min-w-0 space-y-5">
        {item ? (
          children(item)
        ) : (
          <Card>
            <EmptyState icon={PackageOpen} title="Choose one at the left">
              {found.length} {noun} are available to this client.
            </EmptyState>
          </Card>
        )}
      </div>
    </div>
  )
}

/** Links from a server have the name at the server, which a prefix may precede. */
function withoutPrefix(name: string): string {
  return name.slice(name.indexOf('_') + 1)
}
