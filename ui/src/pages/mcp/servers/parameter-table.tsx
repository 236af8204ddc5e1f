import { Table } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import type { Parameter } from './item.ts'

/** Arguments of a tool or prompt. */
export function ParameterTable({ parameters }: { parameters: readonly Parameter[] }) {
  return (
    <div className="overflow-hidden rounded-lg border border-line">
      <Table<Parameter>
        label="Arguments"
        rows={parameters}
        keyOf={({ name }) => name}
        columns={[
          {
            id: 'name',
            title: 'Argument',
            render: ({ name, required }) => (
              <span className="flex items-center gap-2">
                <bdi className="font-mono text-xs">{name}</bdi>
                {required && <Badge>required</Badge>}
              </span>
            ),
          },
          {
            id: 'type',
            title: 'Type',
            render: ({ type }) => <bdi className="font-mono text-xs break-words text-ink-soft">{type}</bdi>,
          },
          {
            id: 'description',
            title: 'Description',
            from: 'sm',
            render: ({ description }) => <bdi className="text-xs text-ink-soft">{description}</bdi>,
          },
        ]}
      />
    </div>
  )
}
