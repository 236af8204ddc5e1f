import { Pencil, Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { type ConfigRecord, useKindSchema, useRecords } from '../../api/resources.ts'
import { useMayChange } from '../../api/whoami.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Prose } from '../../schema-form/frame/prose.tsx'
import { labelOf } from '../../schema-form/model/label.ts'
import type { JsonSchema } from '../../schema-form/model/schema.ts'
import { resolveSchema } from '../../schema-form/model/schema.ts'
import { isObject } from '../../schema-form/model/value.ts'
import { OriginBadge } from '../resources/resource-list.tsx'

/** Policies of one kind: those that are set, in the order of the schema, and those that can be added. */
export function PolicyList({ kind, path }: { kind: string; path: string }) {
  const mayChange = useMayChange()
  const schema = useKindSchema(kind)
  const records = useRecords<unknown>(kind, { limit: 1000 })
  const error = schema.error ?? records.error
  if (error) {
    return (
      <ErrorState error={error} onRetry={() => void Promise.all([schema.refetch(), records.refetch()])} />
    )
  }
  if (schema.data === undefined || records.data === undefined) {
    return (
      <Card>
        <SkeletonLines count={8} />
      </Card>
    )
  }
  const policies = policiesOf(schema.data as JsonSchema)
  const byName = new Map(records.data.resources.map((record) => [record.name ?? '', record]))
  const set = policies.filter(({ name }) => byName.has(name))
  // An alias of another policy is of use only where a configuration has it already.
  const absent = policies.filter(
    ({ name, description }) => !byName.has(name) && !description.startsWith('Alias'),
  )
  return (
    <>
      <Card title="In effect" about="Applied to every request" flush>
        {set.length === 0 ? (
          <p className="px-5 pt-1 pb-5 text-sm text-ink-soft">
            No policy is set. The available ones are below.
          </p>
        ) : (
          <ul className="divide-y divide-line border-t border-line">
            {set.map(({ name, description }) => (
              <PolicyRow
                key={name}
                href={`${path}/${name}`}
                label={labelOf(name)}
                description={description}
                record={byName.get(name)}
                action={
                  <ButtonLink size="small" icon={Pencil} href={`${path}/${name}`}>
                    {mayChange ? 'Edit' : 'View'}
                    <span className="sr-only"> {labelOf(name)}</span>
                  </ButtonLink>
                }
              />
            ))}
          </ul>
        )}
      </Card>
      {absent.length > 0 && (
        <Card title="Available" about="Not set" flush>
          <ul className="divide-y divide-line border-t border-line">
            {absent.map(({ name, description }) => (
              <PolicyRow
                key={name}
                href={mayChange ? `${path}/${name}` : undefined}
                label={labelOf(name)}
                description={description}
                record={undefined}
                action={
                  mayChange && (
                    <ButtonLink size="small" icon={Plus} href={`${path}/${name}`}>
                      Add
                      <span className="sr-only"> {labelOf(name)}</span>
                    </ButtonLink>
                  )
                }
              />
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}

function PolicyRow({
  href,
  label,
  description,
  record,
  action,
}: {
  href: string | undefined
  label: string
  description: string
  record: ConfigRecord<unknown> | undefined
  action: ReactNode
}) {
  return (
    <li className="flex items-center gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-2 text-sm font-medium">
          {href === undefined ? (
            label
          ) : (
            <Link href={href} className="hover:underline">
              {label}
            </Link>
          )}
          {record && <OriginBadge record={record} />}
        </div>
        <p className="mt-0.5 max-w-3xl text-xs text-ink-faint">
          <Prose text={description} />
        </p>
        {record && <p className="mt-1 truncate font-mono text-xs text-ink-soft">{contentOf(record.value)}</p>}
      </div>
      {action}
    </li>
  )
}

type Policy = { readonly name: string; readonly description: string }

function policiesOf({ properties = {}, definitions = {} }: JsonSchema): readonly Policy[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    description: resolveSchema(schema, definitions).description ?? '',
  }))
}

/** What a policy contains, in one line. */
function contentOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 1 ? '1 entry' : `${value.length} entries`
  if (!isObject(value)) return String(value)
  return Object.entries(value)
    .map(
      ([name, member]) =>
        `${name}: ${Array.isArray(member) ? member.length : isObject(member) ? '…' : member}`,
    )
    .join('  ')
}
