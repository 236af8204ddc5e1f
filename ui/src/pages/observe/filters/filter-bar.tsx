import { ListFilter, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useSearchParams } from 'wouter'
import { Button } from '../../../components/action/button.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Popover } from '../../../components/layout/popover.tsx'
import type { FilterField } from './fields.ts'
import { FilterEditor } from './filter-editor.tsx'
import { describeFilter, type Filter, withFilter, withoutFilter } from './url-filters.ts'

type FilterBarProps = {
  readonly filters: readonly Filter[]
  readonly text?: string
  readonly fields?: readonly FilterField[]
  readonly options: Readonly<Record<string, readonly (string | number)[]>>
  /** Without free text. */
  readonly plain?: boolean
  readonly children?: ReactNode
}

/** Conditions on requests, stored in the address. */
export function FilterBar({ filters, text = '', fields, options, plain = false, children }: FilterBarProps) {
  const [, setParameters] = useSearchParams()
  const [edited, setEdited] = useState<string>()
  const apply = (filter: Filter) => {
    setParameters((current) => withFilter(current, filter))
    setEdited(undefined)
  }
  const more = { options, onApply: apply, ...(fields === undefined ? {} : { fields }) }
  return (
    <div className="space-y-2.5">
      <div className="flex flex-wrap items-center gap-2">
        {!plain && (
          <SearchInput
            value={text}
            label="Search requests"
            placeholder="Path, model, key, user, error, tool"
            onChange={(value) =>
              setParameters(
                (current) => {
                  const next = new URLSearchParams(current)
                  next.delete('cursor')
                  if (value === '') next.delete('text')
                  else next.set('text', value)
                  return next
                },
                { replace: true },
              )
            }
          />
        )}
        {children}
        <Popover
          open={edited === 'new'}
          onOpenChange={(open) => setEdited(open ? 'new' : undefined)}
          label="Add a filter"
          trigger={<Button icon={ListFilter}>Filter</Button>}
        >
          <FilterEditor initial={undefined} {...more} />
        </Popover>
      </div>
      {filters.length > 0 && (
        <ul aria-label="Filters" className="flex flex-wrap items-center gap-1.5">
          {filters.map((filter) => (
            <li
              key={`${filter.field.name}-${filter.kind}`}
              className="flex h-7 max-w-full items-center rounded-md border border-line bg-surface text-xs shadow-card"
            >
              <Popover
                open={edited === filter.field.name}
                onOpenChange={(open) => setEdited(open ? filter.field.name : undefined)}
                label="Change the filter"
                trigger={
                  <button type="button" className="h-full max-w-80 truncate rounded-l-md px-2 hover:bg-hover">
                    {describeFilter(filter)}
                  </button>
                }
              >
                <FilterEditor initial={filter} {...more} />
              </Popover>
              <button
                type="button"
                aria-label={`Remove the filter ${describeFilter(filter)}`}
                className="grid h-full w-7 place-items-center rounded-r-md border-l border-line text-ink-faint hover:bg-hover hover:text-ink"
                onClick={() => setParameters((current) => withoutFilter(current, filter.field.name))}
              >
                <X className="size-3.5" aria-hidden />
              </button>
            </li>
          ))}
          <li>
            <Button
              size="small"
              tone="quiet"
              onClick={() =>
                setParameters((current) =>
                  filters.reduce((next, { field }) => withoutFilter(next, field.name), current),
                )
              }
            >
              Clear all
            </Button>
          </li>
        </ul>
      )}
    </div>
  )
}
