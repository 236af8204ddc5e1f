import { EyeOff, Telescope } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { Button } from '../../../components/action/button.tsx'
import { type Column, Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import type { DecidingRule, VisibleItem } from '../queries.ts'

/** Rows that are rendered at once. */
const pageSize = 200

type Row = VisibleItem & { readonly kind: string }

const columns: readonly Column<Row>[] = [
  {
    id: 'visible',
    title: 'Client',
    render: ({ visible, rule }) =>
      visible ? (
        <Badge tone="good" dot>
          {rule?.readsArguments ? 'depends on the call' : 'visible'}
        </Badge>
      ) : (
        <Badge tone="bad" dot>
          hidden
        </Badge>
      ),
  },
  {
    id: 'name',
    title: 'Name',
    className: 'max-w-80',
    render: ({ exposedName, title }) => (
      <span className="block min-w-40">
        <bdi className="font-mono text-xs break-all">{exposedName}</bdi>
        {title && <bdi className="block text-xs break-words text-ink-faint">{title}</bdi>}
      </span>
    ),
  },
  {
    id: 'target',
    title: 'Server',
    from: 'md',
    render: ({ target }) => (
      <Link href={`/mcp/servers/${encodeURIComponent(target)}`} className="hover:underline">
        {target}
      </Link>
    ),
  },
  { id: 'rule', title: 'Decided by', render: (row) => <Decision item={row} /> },
]

/** Items with the decision on each. */
export function VisibleList({ label, items }: { label: string; items: readonly Row[] }) {
  const [shown, setShown] = useState(pageSize)
  if (items.length === 0)
    return (
      <EmptyState icon={label === 'Hidden' ? EyeOff : Telescope} title="Nothing here">
        No item of the servers matches this selection.
      </EmptyState>
    )
  return (
    <>
      <Table
        label={label}
        columns={columns}
        rows={items.slice(0, shown)}
        keyOf={({ kind, target, name }) => `${kind} ${target} ${name}`}
      />
      {items.length > shown && (
        <div className="border-t border-line p-3 text-center">
          <Button onClick={() => setShown(shown + pageSize)}>Show more</Button>
        </div>
      )}
    </>
  )
}

function Decision({ item: { visible, rule, reason } }: { item: VisibleItem }) {
  if (rule !== undefined) return <Rule rule={rule} />
  if (reason !== undefined) return <span className="text-xs text-ink-soft">{capitalised(reason)}</span>
  return <span className="text-xs text-ink-faint">{visible ? 'No rule hides it' : ''}</span>
}

const outcomes = {
  allow: 'allows it',
  deny: 'denies it',
  require: 'is not met',
} as const

function Rule({ rule }: { rule: DecidingRule }) {
  const { kind, index, expression, error, readsArguments } = rule
  return (
    <span className="block max-w-xl min-w-56 text-xs">
      <Link href="/mcp/policies/mcpAuthorization" className="font-medium hover:underline">
        Rule {index + 1} ({kind})
      </Link>{' '}
      <span className="text-ink-soft">
        {readsArguments ? 'reads the arguments of the call' : error ? 'cannot be evaluated' : outcomes[kind]}
      </span>
      <code className="mt-0.5 block break-words text-ink-soft">{expression}</code>
      {error && <span className="mt-0.5 block text-bad">{error}</span>}
    </span>
  )
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
