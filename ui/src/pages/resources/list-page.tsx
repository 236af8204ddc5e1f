import { useParams } from 'wouter'
import type { ConfigRecord } from '../../api/resources.ts'
import type { Column } from '../../components/data/table.tsx'
import { formatAgo, formatDateTime } from '../../format/time.ts'
import { summaryOf } from '../../schema-form/model/summary.ts'
import { isObject } from '../../schema-form/model/value.ts'
import { lookOf } from './kinds.ts'
import { ResourceList } from './resource-list.tsx'

const columns: readonly Column<ConfigRecord>[] = [
  {
    id: 'content',
    title: 'Content',
    from: 'md',
    className: 'max-w-md truncate text-ink-soft',
    render: ({ value }) => contentOf(value),
  },
  {
    id: 'updated',
    title: 'Updated',
    sort: 'updatedAt',
    from: 'sm',
    className: 'whitespace-nowrap text-ink-soft',
    render: ({ updatedAt }) =>
      updatedAt && (
        <time dateTime={updatedAt} title={formatDateTime(updatedAt)}>
          {formatAgo(updatedAt)}
        </time>
      ),
  },
]

/** All records of any kind. */
export default function ResourceListPage() {
  const { kind = '' } = useParams()
  const { title, noun, icon } = lookOf(kind)
  return (
    <ResourceList
      key={kind}
      kind={kind}
      title={title}
      about={`Records of the kind ${kind}, of the file and of the database.`}
      noun={noun}
      icon={icon}
      path={`/resources/${encodeURIComponent(kind)}`}
      columns={columns}
    />
  )
}

function contentOf(value: unknown): string {
  if (!isObject(value)) return summaryOf(value) ?? ''
  return Object.keys(value)
    .filter((name) => name !== 'name' && name !== 'id')
    .join(', ')
}
