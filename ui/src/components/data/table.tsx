import { ArrowDown, ArrowUp } from 'lucide-react'
import type { ReactNode } from 'react'
import { classNames } from '../class-names.ts'

export type Column<Row> = {
  readonly id: string
  readonly title: string
  render(row: Row): ReactNode
  /** Right aligned, tabular digits. */
  readonly numeric?: boolean
  /** Sort key of the server, ascending; absent where the server cannot sort. */
  readonly sort?: string
  /** Hidden below this width of the window. */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl'
  readonly className?: string
}

type TableProps<Row> = {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** Current sort key; `-` in front is descending. */
  readonly sort?: string | undefined
  onSort?(sort: string): void
  onOpen?(row: Row): void
  readonly busy?: boolean
}

const hidden = { sm: 'max-sm:hidden', md: 'max-md:hidden', lg: 'max-lg:hidden', xl: 'max-xl:hidden' }

/** A table of one page of rows. Sorting and paging are the server's. */
export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  sort,
  onSort,
  onOpen,
  busy = false,
}: TableProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className="relative overflow-x-auto -outline-offset-2">
      <table
        aria-label={label}
        aria-busy={busy}
        className={classNames('w-full border-collapse text-sm', busy && 'opacity-60')}
      >
        <thead>
          <tr className="border-b border-line text-left text-xs text-ink-faint">
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              className={classNames(
                'border-b border-line last:border-0',
                onOpen && 'cursor-pointer hover:bg-hover',
              )}
              onClick={onOpen && ((event) => isControl(event.target) || onOpen(row))}
            >
              {columns.map((column) => (
                <td key={column.id} className={cellClass(column)}>
                  {column.render(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function HeaderCell<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>
  sort: string | undefined
  onSort: ((sort: string) => void) | undefined
}) {
  const descending = sort === `-${column.sort}`
  const active = column.sort !== undefined && (descending || sort === column.sort)
  const Arrow = descending ? ArrowDown : ArrowUp
  return (
    <th
      scope="col"
      aria-sort={active ? (descending ? 'descending' : 'ascending') : undefined}
      className={classNames(cellClass(column), 'font-medium')}
    >
      {column.sort === undefined || onSort === undefined ? (
        column.title
      ) : (
        <button
          type="button"
          className="inline-flex items-center gap-1 hover:text-ink"
          onClick={() => onSort(active && !descending ? `-${column.sort}` : String(column.sort))}
        >
          {column.title}
          <Arrow className={classNames('size-3', !active && 'opacity-0')} aria-hidden />
        </button>
      )}
    </th>
  )
}

function cellClass<Row>({ numeric, from, className }: Column<Row>): string {
  return classNames(
    'h-10 px-3 py-1.5 first:pl-5 last:pr-5',
    numeric && 'text-right tabular',
    from && hidden[from],
    className,
  )
}

/** Clicks on links and buttons in a row are not clicks on the row. */
function isControl(target: EventTarget): boolean {
  return (
    target instanceof Element && target.closest('a, button, input, select, label, [role="menuitem"]') !== null
  )
}
