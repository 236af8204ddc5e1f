import { ChevronRight, PackageOpen, Play } from 'lucide-react'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { classNames } from '../../../components/class-names.ts'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Card } from '../../../components/layout/card.tsx'
import type { McpItem } from '../queries.ts'
import { descriptionOf, hintsOf, matches, nameOf, parametersOf, titleOf } from './item.ts'
import { ParameterTable } from './parameter-table.tsx'

const nouns = { tool: 'tools', prompt: 'prompts', resource: 'resources' } as const
/** Rows that are rendered at once. */
const pageSize = 100

type ItemKind = keyof typeof nouns

/** Items of a list of a server, with search and details. */
export function ItemList({
  kind,
  items,
  server,
}: {
  kind: ItemKind
  items: readonly McpItem[]
  server: string
}) {
  const [parameters, setParameters] = useSearchParams()
  const [shown, setShown] = useState(pageSize)
  const search = parameters.get('search') ?? ''
  const setSearch = (text: string) =>
    setParameters(
      (current) => {
        const next = new URLSearchParams(current)
        if (text === '') next.delete('search')
        else next.set('search', text)
        return next
      },
      { replace: true },
    )
  // Keys are those of the whole list: an open item stays open while the search changes.
  const found = items
    .map((item, index) => ({ item, key: `${nameOf(item)} ${index}` }))
    .filter(({ item }) => matches(item, search))
  if (items.length === 0)
    return (
      <Card>
        <EmptyState icon={PackageOpen} title={`${server} offers no ${nouns[kind]}`}>
          Servers may add {nouns[kind]} later; “Check now” reads the list again.
        </EmptyState>
      </Card>
    )
  return (
    <Card flush>
      <div className="px-4 py-3 sm:px-5">
        <SearchInput label={`Search ${nouns[kind]}`} value={search} onChange={setSearch} />
      </div>
      {found.length === 0 ? (
        <EmptyState
          icon={PackageOpen}
          title={`No ${nouns[kind]} match “${search}”`}
          action={<Button onClick={() => setSearch('')}>Clear the search</Button>}
        />
      ) : (
        <ul className="divide-y divide-line border-t border-line">
          {found.slice(0, shown).map(({ item, key }) => (
            <ItemRow key={key} kind={kind} item={item} />
          ))}
        </ul>
      )}
      {found.length > shown && (
        <div className="border-t border-line p-3 text-center">
          <Button onClick={() => setShown(shown + pageSize)}>
            Show {Math.min(pageSize, found.length - shown)} more
          </Button>
        </div>
      )}
    </Card>
  )
}

function ItemRow({ kind, item }: { kind: ItemKind; item: McpItem }) {
  const [open, setOpen] = useState(false)
  const name = nameOf(item)
  const title = titleOf(item)
  const description = descriptionOf(item)
  return (
    <li>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex w-full items-start gap-2 px-4 py-3 text-left -outline-offset-2 hover:bg-hover sm:px-5"
      >
        <ChevronRight
          className={classNames(
            'mt-0.5 size-4 shrink-0 text-ink-faint transition-transform',
            open && 'rotate-90',
          )}
          aria-hidden
        />
        <span className="min-w-0 flex-1">
          <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <bdi className="min-w-0 font-mono text-xs font-medium break-all">{name}</bdi>
            {title && <bdi className="min-w-0 text-sm break-words text-ink-soft">{title}</bdi>}
            {kind === 'tool' &&
              hintsOf(item).map(({ text, tone }) => (
                <Badge key={text} tone={tone}>
                  {text}
                </Badge>
              ))}
          </span>
          {description && (
            <bdi className={classNames('mt-0.5 block text-xs text-ink-soft', !open && 'line-clamp-2')}>
              {description}
            </bdi>
          )}
        </span>
      </button>
      {open && <ItemDetails kind={kind} item={item} />}
    </li>
  )
}

function ItemDetails({ kind, item }: { kind: ItemKind; item: McpItem }) {
  const parameters = parametersOf(item)
  return (
    <div className="space-y-4 px-4 pb-4 sm:pr-5 sm:pl-11">
      {kind !== 'resource' &&
        (parameters.length === 0 ? (
          <p className="text-sm text-ink-soft">No arguments.</p>
        ) : (
          <ParameterTable parameters={parameters} />
        ))}
      <ButtonLink
        icon={Play}
        size="small"
        href={`/mcp/playground?${kind}=${encodeURIComponent(nameOf(item))}`}
      >
        Open in the playground
      </ButtonLink>
      <details>
        <summary className="cursor-pointer text-xs text-ink-soft">As sent by the server</summary>
        <div className="mt-2">
          <CodeBlock label="definition" text={JSON.stringify(item, undefined, 2)} />
        </div>
      </details>
    </div>
  )
}
